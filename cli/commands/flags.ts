import { readFileSync } from "node:fs";
import { type TSchema, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import type { Metadata } from "../../src/accounts/metadata.ts";
import { flagFields } from "../../src/flags/api/flag-input.ts";
import { FlagInput } from "../../src/flags/api/flag-shapes.ts";
import { writeDocument } from "../../src/flags/exchange/document.ts";
import { storedFlag } from "../../src/flags/exchange/project-content.ts";
import { documentText } from "../../src/flags/exchange/read-document.ts";
import { rolloutSummaryOf, statusFieldOf } from "../../src/flags/status.ts";
import { type Flag, findFlagByKey, readFlags } from "../../src/flags/store/flag.ts";
import { createFlag, updateFlag } from "../../src/flags/store/flag-writes.ts";
import { parseFields } from "../../src/http/fields.ts";
import { AppError, InvalidField } from "../../src/lib/errors.ts";
import { isJsonObject, type JsonObject } from "../../src/lib/json.ts";
import { FlagRecord, flagRecord } from "../flag-record.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, print, printJson, printTable, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { type ProjectStores, withProject } from "../stores.ts";
import { exportFlags, importFlags } from "./flags-exchange.ts";
import { explain } from "./flags-explain.ts";

/** The project has no flag with this key. */
class NoSuchFlag extends AppError {
  readonly code = "no_such_flag";
  override readonly hint = "`flagkeep flags list` shows all keys.";
  constructor(key: string) {
    super(`There is no flag ${key}.`);
  }
}

interface CommonOptions {
  project?: number;
  json?: true;
}

/** Adds the options that all these commands have. */
const common = (command: Command, shape: TSchema): Command =>
  withJson(withSettings(command, ["data-dir"]), shape).option(
    "--project <id>",
    "the project; may be left out when there is one",
    positiveInteger,
  );

const list = common(new Command("list"), Type.Array(FlagRecord))
  .description("List the flags of a project by key.")
  .addHelpText("after", "\nExample:\n  flagkeep flags list --json")
  .action(
    run((options: CommonOptions) =>
      withProject(options, ({ metadata, project }) => {
        const flags = readFlags(metadata.db, project.id);
        if (options.json) return printJson(flags.map(flagRecord));
        printTable(["key", "on", "rollout", "variants", "version", "note", "description"], flags.map(row));
      }),
    ),
  );

function row(flag: Flag): string[] {
  const { maxRolloutPercentage, hasTargetingConditions } = rolloutSummaryOf(flag.filters);
  const { variants } = (flag.filters.multivariate ?? {}) as { variants?: { key: string }[] };
  return [
    flag.key,
    flag.active ? "yes" : "no",
    `${maxRolloutPercentage}%${hasTargetingConditions ? " of some" : ""}`,
    (variants ?? []).map(({ key }) => key).join(","),
    String(flag.version),
    statusFieldOf(flag, new Date()) === "STALE" ? "stale" : "",
    flag.name,
  ];
}

const get = common(new Command("get"), FlagRecord)
  .description("Show one flag, in the form in which `flags import` reads it.")
  .argument("<key>", "the flag's key")
  .addHelpText("after", "\nExample:\n  flagkeep flags get new-checkout")
  .action(
    run((key: string, options: CommonOptions) =>
      withProject(options, (stores) => {
        const flag = flagOf(stores, key);
        if (options.json) return printJson(flagRecord(flag));
        const { flags } = writeDocument({ flags: [storedFlag(flag)], cohorts: [], groupTypes: [] });
        print(documentText({ flagkeep_flags: 1, group_types: {}, cohorts: [], flags }, "yaml").trimEnd());
      }),
    ),
  );

interface CreateOptions extends CommonOptions {
  name?: string;
  rollout?: number;
  filters?: JsonObject;
  variant?: { key: string; rollout_percentage: number }[];
  payload?: [name: string, json: string][];
  tag?: string[];
  runtime?: string;
  inactive?: true;
  continuity?: true;
  dashboard: boolean;
}

const collect = <Value>(parse: (text: string) => Value) => {
  return (text: string, before: Value[] | undefined): Value[] => [...(before ?? []), parse(text)];
};

const create = common(new Command("create"), FlagRecord)
  .description("Create a flag, on for everybody unless told otherwise.")
  .argument("<key>", "letters, digits, - and _")
  .option("--name <text>", "what the flag is for")
  .option("--rollout <percent>", "share of persons for whom it is on", percentage)
  .option("--variant <key=percent>", "a variant and its share; repeat for more", collect(variant))
  .option("--payload <json>", "the payload, or <variant>=<json>; repeat for more", collect(payload))
  .option("--filters <json>", "whole filters as in the API, or @FILE; instead of the three above", filtersOf)
  .option("--tag <name>", "a tag; repeat for more", collect(String))
  .option("--runtime <where>", "all, client or server")
  .option("--continuity", "whoever is identified keeps the value seen before")
  .option("--inactive", "create it switched off")
  .option("--no-dashboard", "without a usage dashboard")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep flags create new-checkout --rollout 10\n" +
      '  flagkeep flags create button --variant blue=50 --variant green=50 --payload \'green={"hex":"#0a0"}\'\n' +
      "  flagkeep flags create pro --filters @pro.json",
  )
  .action(
    run((key: string, options: CreateOptions) =>
      withProject(options, ({ writing, project, author }) => {
        const input = parseFields(FlagInput, inputOf(key, options));
        const flag = createFlag(writing, {
          ...author,
          projectId: project.id,
          fields: { ...flagFields(input), key: input.key },
          createsUsageDashboard: options.dashboard,
          now: new Date(),
        });
        if (options.json) return printJson(flagRecord(flag));
        print(`Flag ${flag.key} is made${flag.active ? "" : ", switched off"}; its id is ${flag.id}.`);
      }),
    ),
  );

/** The body that would be sent to the API. */
function inputOf(key: string, options: CreateOptions): JsonObject {
  const { rollout, variant: variants = [], payload: payloads = [], filters } = options;
  if (filters && (rollout !== undefined || variants.length > 0 || payloads.length > 0)) {
    const detail = "--filters says everything; leave out --rollout, --variant and --payload.";
    throw new InvalidField(null, "invalid_input", detail);
  }
  const named = payloads.map(([name, json]) => [name === "" ? "true" : name, json]);
  return {
    key,
    ...(options.name === undefined ? {} : { name: options.name }),
    active: options.inactive !== true,
    filters: filters ?? {
      groups: [{ properties: [], rollout_percentage: rollout ?? 100 }],
      ...(variants.length === 0 ? {} : { multivariate: { variants } }),
      ...(named.length === 0 ? {} : { payloads: Object.fromEntries(named) }),
    },
    ...(options.tag === undefined ? {} : { tags: options.tag }),
    ...(options.runtime === undefined ? {} : { evaluation_runtime: options.runtime }),
    ...(options.continuity ? { ensure_experience_continuity: true } : {}),
  };
}

const enable = switching("enable", "Switch flags on.", true);
const disable = switching("disable", "Switch flags off: they leave all answers.", false);

function switching(name: string, description: string, active: boolean): Command {
  return common(new Command(name), Type.Array(FlagRecord))
    .description(description)
    .argument("<key...>", "the flags' keys")
    .addHelpText("after", `\nExample:\n  flagkeep flags ${name} new-checkout`)
    .action(
      run((keys: string[], options: CommonOptions) =>
        withProject(options, (stores) => {
          const { writing, project, author } = stores;
          const before = keys.map((key) => flagOf(stores, key));
          // All of them or none: later ones may be refused because other flags depend on them.
          const after = writing.metadata.change((t) => {
            const inside = { ...writing, metadata: joining(writing.metadata, t) };
            return before.map((flag) =>
              flag.active === active
                ? flag
                : updateFlag(inside, {
                    ...author,
                    projectId: project.id,
                    id: flag.id,
                    fields: { active },
                    sent: { active },
                    now: new Date(),
                  }),
            );
          });
          if (options.json) return printJson(after.map(flagRecord));
          for (const [index, flag] of after.entries()) {
            const was = before[index]!.active === active ? " already" : "";
            print(`Flag ${flag.key} is${was} switched ${active ? "on" : "off"}.`);
          }
        }),
      ),
    );
}

/** A view of the metadata whose changes take part in a transaction that runs already. */
function joining(metadata: Metadata, t: Parameters<Parameters<Metadata["change"]>[0]>[0]): Metadata {
  return Object.create(metadata, { change: { value: (work: (inner: typeof t) => unknown) => work(t) } });
}

/** @throws {NoSuchFlag} */
function flagOf({ metadata, project }: ProjectStores, key: string): Flag {
  const flag = findFlagByKey(metadata.db, project.id, key);
  if (flag === undefined) throw new NoSuchFlag(key);
  return flag;
}

function percentage(text: string): number {
  const value = Number(text.replace(/%$/, ""));
  if (text.trim() === "" || !(value >= 0 && value <= 100)) {
    throw new InvalidArgumentError("It must be a number from 0 to 100.");
  }
  return value;
}

function variant(text: string): { key: string; rollout_percentage: number } {
  const equals = text.lastIndexOf("=");
  if (equals < 1) throw new InvalidArgumentError("It must be such as control=50.");
  return { key: text.slice(0, equals), rollout_percentage: percentage(text.slice(equals + 1)) };
}

/** `{"a":1}` or `control={"a":1}`; the text of the JSON is kept as it is. */
function payload(text: string): [name: string, json: string] {
  const [, name = "", json = text] = /^([A-Za-z0-9_-]+)=(.*)$/s.exec(text) ?? [];
  try {
    JSON.parse(json);
  } catch {
    throw new InvalidArgumentError("It must be JSON, or such as control=JSON.");
  }
  return [name, json];
}

function filtersOf(text: string): JsonObject {
  let filters: unknown;
  try {
    filters = JSON.parse(text.startsWith("@") ? readFileSync(text.slice(1), "utf8") : text);
  } catch (error) {
    throw new InvalidArgumentError(`It must be JSON, or @ and a file of JSON (${(error as Error).message}).`);
  }
  if (!isJsonObject(filters)) throw new InvalidArgumentError("It must be a JSON object.");
  return filters;
}

export const flags = new Command("flags")
  .description("Work with feature flags; changes count at once, also in a running appliance.")
  .addCommand(list)
  .addCommand(get)
  .addCommand(create)
  .addCommand(enable)
  .addCommand(disable)
  .addCommand(exportFlags)
  .addCommand(importFlags)
  .addCommand(explain);
