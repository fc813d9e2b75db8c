/** Types of settings: parsing, and the error for an invalid value. */

import { Cron } from "croner";
import ipaddr from "ipaddr.js";
import { AppError } from "./errors.ts";
import { parseClickHouseUrl, parsePostgresUrl } from "./store-urls.ts";

/** A setting has an invalid value. */
export class InvalidSettingError extends AppError {
  readonly code = "wrong_setting";
}

export interface Setting<Value> {
  /** Name of the value in `--help`: its unit or its choices. */
  unit: string;
  help: string;
  /** In the notation of the settings. */
  default: string;
  parse: (text: string) => Value;
}

type Check<Value> = (value: Value) => string | undefined;

/**
 * A setting with a single value. @param parse returns undefined for an invalid value; the error then quotes `expected`.
 */
export function setting<Value>(
  unit: string,
  parse: (text: string) => Value | undefined,
  expected: string,
  details: { default: string; help: string; check?: Check<Value> },
): Setting<Value> {
  return {
    unit,
    help: details.help,
    default: details.default,
    parse(text) {
      const value = parse(text);
      if (value === undefined) throw new InvalidSettingError(expected);
      const complaint = details.check?.(value);
      if (complaint !== undefined) throw new InvalidSettingError(complaint);
      return value;
    },
  };
}

export const string = (unit: string, details: { default: string; help: string; check?: Check<string> }) =>
  setting(unit, (value) => value, "a text", details);

export const enumeration = <Choice extends string>(
  choices: readonly Choice[],
  details: { default: Choice; help: string },
) =>
  setting(
    choices.join("|"),
    (value) => choices.find((candidate) => candidate === value),
    `one of ${choices.join(", ")}`,
    details,
  );

export const integer = (unit: string, min: number, max: number, details: { default: string; help: string }) =>
  setting(
    unit,
    (value) => {
      const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
      return number >= min && number <= max ? number : undefined;
    },
    `a whole number from ${min} to ${max}`,
    details,
  );

export const milliseconds = (min: number, max: number, details: { default: string; help: string }) =>
  setting(
    "duration",
    (value) => {
      const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(value.trim());
      if (match === null) return undefined;
      const factor = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[(match[2] ?? "ms") as "ms"];
      const result = Number(match[1]) * factor;
      return result >= min && result <= max ? result : undefined;
    },
    `a duration such as 500ms, 2s or 5m (a bare number counts milliseconds), from ${min}ms to ${max}ms`,
    details,
  );

const sizeUnits = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

export const bytes = (min: string, max: string, details: { default: string; help: string }) =>
  setting(
    "size",
    (value) => {
      const size = parseSize(value);
      return size !== undefined && size >= parseSize(min)! && size <= parseSize(max)! ? size : undefined;
    },
    `a size such as 64MiB or 1GB (a bare number counts bytes), from ${min} to ${max}`,
    details,
  );

/** Bytes of `64MiB`, `1.5 GB` or a plain number; undefined when invalid. */
export function parseSize(value: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|KiB|MiB|GiB)?$/.exec(value.trim());
  return match === null
    ? undefined
    : Math.floor(Number(match[1]) * sizeUnits[(match[2] ?? "B") as keyof typeof sizeUnits]);
}

export const url = (details: { default: string; help: string }) =>
  setting(
    "url",
    (value) => {
      if (value === "") return "";
      const parsed = URL.canParse(value) ? new URL(value) : undefined;
      return parsed !== undefined && /^https?:$/.test(parsed.protocol)
        ? value.replace(/\/+$/, "")
        : undefined;
    },
    "an address such as https://flags.example.com",
    details,
  );

export const clickhouse = (details: { default: string; help: string }) =>
  setting(
    "clickhouse://…",
    (value) => (value === "" ? null : parseClickHouseUrl(value)),
    "an address such as clickhouse://user@host:8123/database, optionally with ?cluster=name, quorum=2 or secure=1",
    details,
  );

export const postgres = (details: { default: string; help: string }) =>
  setting(
    "postgres://…",
    (value) => (value === "" ? null : parsePostgresUrl(value)),
    "an address such as postgres://user@host:5432,host:5432/database, optionally with ?sslmode=require",
    details,
  );

/** Whether it is a cron expression with a next time. */
export function isCron(expression: string): boolean {
  try {
    return new Cron(expression, { paused: true }).nextRun() !== null;
  } catch {
    return false;
  }
}

export const cidrList = (details: { default: string; help: string }) =>
  setting(
    "cidr,…",
    (value) => {
      const list = value.split(",").flatMap((part) => (part.trim() === "" ? [] : [part.trim()]));
      return list.every((entry) => ipaddr.isValidCIDR(entry) || ipaddr.isValid(entry)) ? list : undefined;
    },
    "addresses or networks such as 10.0.0.0/8,127.0.0.1",
    details,
  );

const domainShape = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*$/;

/** Comma-separated host names, lower-cased; undefined if one is invalid or there are more than a hundred. */
export function parseDomains(value: string): readonly string[] | undefined {
  const domains = value.split(",").flatMap((part) => part.trim().toLowerCase() || []);
  return domains.length <= 100 && domains.every((domain) => domainShape.test(domain)) ? domains : undefined;
}

/** Event retention; null: forever. */
export interface EventsRetention {
  /** For projects without a rule. */
  days: number | null;
  byProject: ReadonlyMap<number, number | null>;
}

/** A hundred years. */
export const retentionDaysMax = 36_500;

/** Parses `90d,3=never`: a rule for all projects, and rules for projects by ID; undefined if a part is invalid. */
export function parseRetention(value: string): EventsRetention | undefined {
  let days: number | null = null;
  const byProject = new Map<number, number | null>();
  for (const part of value.split(",").flatMap((each) => each.trim() || [])) {
    const match = /^(?:([1-9]\d{0,8})=)?(?:(\d{1,5})d|never)$/.exec(part);
    const wanted = match?.[2] === undefined ? null : Number(match[2]);
    if (match === null || wanted === 0 || (wanted ?? 0) > retentionDaysMax) return undefined;
    if (match[1] === undefined) days = wanted;
    else byProject.set(Number(match[1]), wanted);
  }
  return { days, byProject };
}
