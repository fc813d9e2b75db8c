import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { writeDocument } from "../../src/flags/exchange/document.ts";
import { storedFlag } from "../../src/flags/exchange/project-content.ts";
import { documentText } from "../../src/flags/exchange/read-document.ts";
import { type Flag, FlagInput, flagFields } from "../../src/flags/fields.ts";
import { keyCharactersInWords } from "../../src/flags/rules/key-characters.ts";
import { rolloutSummaryOf, statusFieldOf } from "../../src/flags/rules/status.ts";
import { readDeletedFlags, readFlags } from "../../src/flags/store/flag.ts";
import { createFlag } from "../../src/flags/store/flag-writes.ts";
import { parseFields } from "../../src/http/fields.ts";
import { InvalidField } from "../../src/lib/errors.ts";
import type { JsonObject } from "../../src/lib/json.ts";
import { FlagRecord, flagRecords } from "../flag-record.ts";
import { collect, print, printJson, printTable, run } from "../output.ts";
import { creatingAuthor, creatorWords, withProject } from "../stores.ts";
import { deleteFlags, disable, enable, restore, set } from "./flags-change.ts";
import {
  type CommonOptions,
  filtersOf,
  flagOf,
  nobodyHint,
  payload,
  percentage,
  variant,
  withProjectAndJson,
} from "./flags-common.ts";
import { exportFlags, importFlags } from "./flags-exchange.ts";
import { explain } from "./flags-explain.ts";
import { approve, proposals, reject, schedule, scheduled, takeBack } from "./flags-later.ts";

const list = withProjectAndJson(new Command("list"), Type.Array(FlagRecord))
  .description("List the flags of a project.")
  .option("--deleted", "list deleted flags")
  .option("--keys", "print only the keys, one per line")
  .addHelpText("after", "\nExamples:\n  flagkeep flags list --json\n  flagkeep flags list --deleted")
  .action(
    run((options: CommonOptions & { deleted?: true; keys?: true }) =>
      withProject(options, (stores) => {
        const { metadata, project } = stores;
        const read = options.deleted ? readDeletedFlags : readFlags;
        const flags = read(metadata.db, project.id);
        if (options.keys && !options.json)
          return void process.stdout.write(flags.map(({ key }) => `${key}\n`).join(""));
        if (options.json) return printJson(flags.map(flagRecords(stores)));
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

const get = withProjectAndJson(new Command("get"), FlagRecord)
  .description("Show a flag in the format of `flags import`.")
  .argument("<key>", "flag key")
  .addHelpText("after", "\nExample:\n  flagkeep flags get new-checkout")
  .action(
    run((key: string, options: CommonOptions) =>
      withProject(options, (stores) => {
        const flag = flagOf(stores, key);
        const record = flagRecords(stores)(flag);
        if (options.json) return printJson(record);
        const { flags } = writeDocument({ flags: [storedFlag(flag)], cohorts: [], groupTypes: [] });
        print(documentText({ flagkeep_flags: 1, group_types: {}, cohorts: [], flags }, "yaml").trimEnd());
        for (const issue of record.local_evaluation_issues)
          print(`# SDKs cannot evaluate it locally. ${issue}`);
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
  user?: string;
}

const create = withProjectAndJson(new Command("create"), FlagRecord)
  .description("Create a flag; it is off for everyone without --rollout, --variant or --filters.")
  .argument("<key>", keyCharactersInWords)
  .option("--name <text>", "description")
  .option("--rollout <percent>", "rollout percentage", percentage)
  .option(
    "--variant <key=percent>",
    "variant and its percentage; repeatable, the rollout defaults to 100",
    collect(variant),
  )
  .option("--payload <json>", "payload, or <variant>=<json>; repeatable", collect(payload))
  .option("--filters <json>", "complete filters JSON or @FILE, instead of the three options above", filtersOf)
  .option("--tag <name>", "tag; repeatable", collect(String))
  .option("--runtime <where>", "evaluation runtime: all, client or server")
  .option("--continuity", "persist the flag's value across identification")
  .option("--inactive", "create the flag turned off")
  .option("--no-dashboard", "do not create a usage dashboard")
  .option("--user <email>", creatorWords)
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep flags create new-checkout --rollout 10\n" +
      '  flagkeep flags create button --variant blue=50 --variant green=50 --payload \'green={"hex":"#0a0"}\'\n' +
      "  flagkeep flags create pro --filters @pro.json",
  )
  .action(
    run((key: string, options: CreateOptions) =>
      withProject(options, (stores) => {
        const { metadata, writing, project } = stores;
        const input = parseFields(FlagInput, inputOf(key, options));
        const flag = createFlag(writing, {
          by: creatingAuthor(metadata, project.organizationId, options.user),
          projectId: project.id,
          fields: { ...flagFields(input), key: input.key },
          createsUsageDashboard: options.dashboard,
          now: new Date(),
        });
        if (options.json) return printJson(flagRecords(stores)(flag));
        const rollout =
          nobodyHint(flag) || `its rollout is ${rolloutSummaryOf(flag.filters).maxRolloutPercentage}%`;
        const off = flag.active ? "" : " and switched off";
        print(`Flag ${flag.key} is created${off}, with ID ${flag.id}; ${rollout}.`);
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
  // Percentages of variants are meant for everyone; a key alone matches no user (contract, decision 11).
  const percent = rollout ?? (variants.length > 0 ? 100 : undefined);
  return {
    key,
    ...(options.name === undefined ? {} : { name: options.name }),
    active: options.inactive !== true,
    filters: filters ?? {
      groups: percent === undefined ? [] : [{ properties: [], rollout_percentage: percent }],
      ...(variants.length === 0 ? {} : { multivariate: { variants } }),
      ...(named.length === 0 ? {} : { payloads: Object.fromEntries(named) }),
    },
    ...(options.tag === undefined ? {} : { tags: options.tag }),
    ...(options.runtime === undefined ? {} : { evaluation_runtime: options.runtime }),
    ...(options.continuity ? { ensure_experience_continuity: true } : {}),
  };
}

export const flags = new Command("flags")
  .description("Manage feature flags; a running server applies changes immediately.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep flags create new-checkout --rollout 10\n" +
      "  flagkeep flags set new-checkout --rollout 50\n  flagkeep flags explain new-checkout --distinct-id kim",
  )
  .addCommand(list)
  .addCommand(get)
  .addCommand(create)
  .addCommand(set)
  .addCommand(enable)
  .addCommand(disable)
  .addCommand(deleteFlags)
  .addCommand(restore)
  .addCommand(exportFlags)
  .addCommand(importFlags)
  .addCommand(explain)
  .addCommand(schedule)
  .addCommand(scheduled)
  .addCommand(takeBack)
  .addCommand(proposals)
  .addCommand(approve)
  .addCommand(reject);
