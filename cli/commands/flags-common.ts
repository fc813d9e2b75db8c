/** Options, flag lookup and option parsers that the flag commands share. */

import { readFileSync } from "node:fs";
import type { TSchema } from "@sinclair/typebox";
import { type Command, InvalidArgumentError } from "commander";
import type { Flag, FlagAnswer } from "../../src/flags/fields.ts";
import { getGroups } from "../../src/flags/rules/types.ts";
import { parseExactJson } from "../../src/lib/json/exact.ts";
import { isJsonObject, type JsonObject } from "../../src/lib/json/value.ts";
import { FlagNotFoundError } from "../../src/operations/flag-argument.ts";
import { listAllFlags } from "../../src/operations/flags.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { confirmHelp, withCaller } from "../operations/command.ts";
import { FlagStores } from "../operations/flag-stores.ts";
import { type CallOptions, withServer } from "../operations/server.ts";
import { projectOption } from "../options.ts";
import { withJson } from "../output.ts";
import { withSettings } from "../settings.ts";

export type CommonOptions = CallOptions;

/** Adds the options that all these commands have. */
const withProjectAndJson = (command: Command, shape: TSchema): Command =>
  withJson(withSettings(command, ["data-dir"]), shape).addOption(projectOption);

/** For commands that are operations: they work on a server too. */
export function withFlagOptions(command: Command, shape: TSchema): Command {
  withServer(withProjectAndJson(command, shape));
  return command;
}

/** Runs flag operations where the options select. */
export const withFlags = (options: CallOptions, work: (caller: Caller) => Promise<void>) =>
  withCaller(listAllFlags, options, work, (metadata) => new FlagStores(metadata, options));

/** Finds a flag by its key. @throws {FlagNotFoundError} */
export async function flagByKey(caller: Caller, key: string): Promise<FlagAnswer> {
  // The filter ignores letter case.
  const found = (await caller.list(listAllFlags, { key })) as FlagAnswer[];
  const flag = found.find((item) => item.key === key);
  if (flag === undefined) throw new FlagNotFoundError(key);
  return flag;
}

export const withConfirm = (command: Command): Command => command.option("--confirm", confirmHelp);

/** `12.5` or `12.5%` */
export function percentage(text: string): number {
  const value = Number(text.replace(/%$/, ""));
  if (text.trim() === "" || !(value >= 0 && value <= 100)) {
    throw new InvalidArgumentError("Expected a number from 0 to 100.");
  }
  return value;
}

/**
 * Fields that change the rollout of a flag's only condition set, or create one. Fractions are possible in filters only.
 * There a percentage takes effect even if it equals the stored one after rounding (contract, decision 10).
 */
export function rolloutFields(stored: JsonObject, rollout: number): JsonObject {
  const groups = getGroups(stored);
  const [only = { properties: [] }, ...others] = groups;
  // Rejected by validation, whose error names the alternative.
  if (others.length > 0) return { rollout_percentage: Math.round(rollout) };
  return {
    filters: { groups: [{ ...only, rollout_percentage: rollout }] },
    ...(Number.isInteger(rollout) ? { rollout_percentage: rollout } : {}),
  };
}

/** Hint for a flag that matches no user; empty if it has a condition set. */
export function unmatchedHint({ filters }: Pick<Flag, "filters">): string {
  return getGroups(filters).length === 0 ? "it matches nobody yet: add --rollout" : "";
}

/** `control=50` */
export function variant(text: string): { key: string; rollout_percentage: number } {
  const equals = text.lastIndexOf("=");
  if (equals < 1) throw new InvalidArgumentError("Expected KEY=PERCENT, for example control=50.");
  return { key: text.slice(0, equals), rollout_percentage: percentage(text.slice(equals + 1)) };
}

/** `{"a":1}` or `control={"a":1}`; the JSON source is kept unchanged. */
export function payload(text: string): [name: string, json: string] {
  const [, name = "", json = text] = /^([A-Za-z0-9_-]+)=(.*)$/s.exec(text) ?? [];
  try {
    JSON.parse(json);
  } catch {
    throw new InvalidArgumentError("Expected JSON or KEY=JSON, for example control=JSON.");
  }
  return [name, json];
}

/** JSON, or `@` and a file that contains it. */
export function getFilters(text: string): JsonObject {
  let filters: unknown;
  try {
    filters = parseExactJson(text.startsWith("@") ? readFileSync(text.slice(1), "utf8") : text);
  } catch (error) {
    throw new InvalidArgumentError(`Expected JSON or @FILE with JSON (${(error as Error).message}).`);
  }
  if (!isJsonObject(filters)) throw new InvalidArgumentError("Expected a JSON object.");
  return filters;
}

/** A part of a flag that an import omits or changes. */
export function omittedLine({ flag, part, reason }: { flag: string; part: string; reason: string }): string {
  return `Not taken over: flag ${flag}, ${part}: ${reason.replace(/\.$/, "")}.`;
}

const namedKeysMax = 20;

/** The flags that an import turned off. */
export function turnedOffLine(keys: readonly string[], isDryRun: boolean): string {
  const others = keys.length > namedKeysMax ? ` and ${keys.length - namedKeysMax} more` : "";
  const verb = isDryRun ? "Would be imported" : "Imported";
  return `${verb} turned off: ${keys.slice(0, namedKeysMax).join(", ")}${others}. Review them before you enable them.`;
}
