import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { FlagBody } from "../../src/flags/api/flag-schemas.ts";
import { exportedFields, type FlagAnswer } from "../../src/flags/fields.ts";
import { type StoredFlag, writeDocument } from "../../src/flags/import-export/document.ts";
import { serializeDocument } from "../../src/flags/import-export/read-document.ts";
import { keyCharactersMessage } from "../../src/flags/rules/shared-rules.ts";
import { getRolloutSummary } from "../../src/flags/rules/status.ts";
import { withoutDisplayNames } from "../../src/flags/store/flag-conflicts.ts";
import { InvalidFieldError } from "../../src/lib/errors.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { changeRequestCommands, changeRequestOperations } from "../../src/operations/change-requests.ts";
import { flagChangeOperations } from "../../src/operations/flag-changes.ts";
import { flagEffectCommands, flagEffectOperations } from "../../src/operations/flag-effects.ts";
import { flagEvaluationOperations } from "../../src/operations/flag-evaluation.ts";
import { flagStatusOperations } from "../../src/operations/flag-status.ts";
import { createNewFlag, listAllFlags } from "../../src/operations/flags.ts";
import { roleAccessOperations } from "../../src/operations/role-access.ts";
import { scheduledOperations } from "../../src/operations/scheduled-changes.ts";
import { addOperations } from "../operations/command.ts";
import { CohortStores } from "../operations/flag-stores.ts";
import { collect, print, printJson, printTable, run } from "../output.ts";
import { creatorHelp } from "../stores.ts";
import { deleteFlags, disable, enable, restore, set } from "./flags-change.ts";
import {
  type CommonOptions,
  flagByKey,
  getFilters,
  payload,
  percentage,
  unmatchedHint,
  variant,
  withFlagOptions,
  withFlags,
} from "./flags-common.ts";
import { explain } from "./flags-explain.ts";
import { exportFlags, importFlags } from "./flags-import-export.ts";
import { rollout, schedule } from "./flags-schedule.ts";

const list = withFlagOptions(new Command("list"), Type.Array(FlagBody))
  .description("List the flags of a project.")
  .option("--deleted", "list deleted flags")
  .option("--keys", "print only the keys, one per line")
  .addHelpText("after", "\nExamples:\n  flagkeep flags list --json\n  flagkeep flags list --deleted")
  .action(
    run((options: CommonOptions & { deleted?: true; keys?: true }) =>
      withFlags(options, async (caller) => {
        const deleted = options.deleted === true;
        const flags = (await caller.list(listAllFlags, { order: "key", deleted })) as FlagAnswer[];
        if (options.keys && !options.json)
          return void process.stdout.write(flags.map(({ key }) => `${key}\n`).join(""));
        if (options.json) return printJson(flags);
        printTable(["key", "on", "rollout", "variants", "version", "note", "description"], flags.map(row));
      }),
    ),
  );

function row(flag: FlagAnswer): string[] {
  const { maxRolloutPercentage, hasTargetingConditions } = getRolloutSummary(flag.filters);
  const { variants } = (flag.filters.multivariate ?? {}) as { variants?: { key: string }[] };
  return [
    flag.key,
    flag.active ? "yes" : "no",
    `${maxRolloutPercentage}%${hasTargetingConditions ? " of matching users" : ""}`,
    (variants ?? []).map(({ key }) => key).join(","),
    String(flag.version),
    flag.status === "STALE" ? "stale" : "",
    flag.name,
  ];
}

const get = withFlagOptions(new Command("get"), FlagBody)
  .description("Show a flag in the format of `flags import`.")
  .argument("<key>", "flag key")
  .addHelpText("after", "\nExample:\n  flagkeep flags get new-checkout")
  .action(
    run((key: string, options: CommonOptions) =>
      withFlags(options, async (caller) => {
        const flag = await flagByKey(caller, key);
        if (options.json) return printJson(flag);
        const { flags } = writeDocument({ flags: [documentFlag(flag)], cohorts: [], groupTypes: [] });
        print(
          serializeDocument({ flagkeep_flags: 1, group_types: {}, cohorts: [], flags }, "yaml").trimEnd(),
        );
        for (const issue of flag.local_evaluation_issues)
          print(`# SDKs cannot evaluate it locally. ${issue}`);
      }),
    ),
  );

/** A flag for a document, without the names that responses add to conditions. */
function documentFlag(flag: FlagAnswer): StoredFlag {
  const fields = exportedFields.map(({ name }) => [name, flag[name as keyof FlagAnswer]]);
  const { id, key } = flag;
  return { id, key, fields: withoutDisplayNames(Object.fromEntries(fields)) as JsonObject };
}

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

const create = withFlagOptions(new Command("create"), FlagBody)
  .description("Create a flag; it is off for everyone without --rollout, --variant or --filters.")
  .argument("<key>", keyCharactersMessage)
  .option("--name <text>", "description")
  .option("--rollout <percent>", "rollout percentage", percentage)
  .option(
    "--variant <key=percent>",
    "variant and its percentage; repeatable, the rollout defaults to 100",
    collect(variant),
  )
  .option("--payload <json>", "payload, or <variant>=<json>; repeatable", collect(payload))
  .option(
    "--filters <json>",
    "complete filters JSON or @FILE, instead of the three options above",
    getFilters,
  )
  .option("--tag <name>", "tag; repeatable", collect(String))
  .option("--runtime <where>", "evaluation runtime: all, client or server")
  .option("--continuity", "persist the flag's value across identification")
  .option("--inactive", "create the flag turned off")
  .option("--no-dashboard", "do not create a usage dashboard")
  .option("--user <email>", creatorHelp)
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep flags create new-checkout --rollout 10\n" +
      '  flagkeep flags create button --variant blue=50 --variant green=50 --payload \'green={"hex":"#0a0"}\'\n' +
      "  flagkeep flags create pro --filters @pro.json",
  )
  .action(
    run((key: string, options: CreateOptions) =>
      withFlags(options, async (caller) => {
        const input = { ...getInput(key, options), _should_create_usage_dashboard: options.dashboard };
        const flag = (await caller.call(createNewFlag, input)) as FlagAnswer;
        if (options.json) return printJson(flag);
        const rollout =
          unmatchedHint(flag) || `its rollout is ${getRolloutSummary(flag.filters).maxRolloutPercentage}%`;
        const off = flag.active ? "" : " and switched off";
        print(`Flag ${flag.key} is created${off}, with ID ${flag.id}; ${rollout}.`);
      }),
    ),
  );

/** Body of the equivalent API request. */
function getInput(key: string, options: CreateOptions): JsonObject {
  const { rollout, variant: variants = [], payload: payloads = [], filters } = options;
  if (filters && (rollout !== undefined || variants.length > 0 || payloads.length > 0)) {
    const detail = "--filters is complete: omit --rollout, --variant and --payload.";
    throw new InvalidFieldError(null, "invalid_input", detail);
  }
  const named = payloads.map(([name, json]) => [name === "" ? "true" : name, json]);
  // Variant percentages imply all users; a key alone matches no user (contract, decision 11).
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
  .addCommand(rollout);
addOperations(
  flags,
  [
    ...scheduledOperations,
    ...changeRequestOperations,
    ...changeRequestCommands,
    ...flagStatusOperations,
    ...flagEvaluationOperations,
    ...flagEffectOperations,
    ...flagEffectCommands,
    ...flagChangeOperations,
    ...roleAccessOperations,
  ],
  (metadata, options) => new CohortStores(metadata, options),
);
