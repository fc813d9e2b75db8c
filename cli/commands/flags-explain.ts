import type { Static } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import { formatExplanation } from "../../src/flags/api/explanation-text.ts";
import { explainDraft } from "../../src/flags/evaluation-context/draft.ts";
import { ExplanationBody } from "../../src/flags/evaluation-context/explanation-shape.ts";
import { findFlagByKey } from "../../src/flags/store/flag.ts";
import { parseExactJson } from "../../src/lib/json/exact.ts";
import type { Json, JsonObject } from "../../src/lib/json.ts";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import { FlagNotFoundError } from "../../src/operations/flag-argument.ts";
import { explainOneFlag } from "../../src/operations/flags.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { getServer } from "../operations/server.ts";
import { print, printJson, run } from "../output.ts";
import { withProject } from "../stores.ts";
import { type CommonOptions, flagByKey, getFilters, withFlagOptions, withFlags } from "./flags-common.ts";

type Pair = [name: string, value: string];

interface ExplainOptions extends CommonOptions {
  distinctId: string;
  group?: Pair[];
  personProperty?: Pair[];
  deviceId?: string;
  filters?: JsonObject;
}

type Explanation = Static<typeof ExplanationBody>;

export const explain = withFlagOptions(new Command("explain"), ExplanationBody)
  .description("Explain a flag's value for a user.")
  .argument("<key>", "flag key")
  .requiredOption("--distinct-id <id>", "distinct id of the user")
  .option("--group <type=key>", "group, for example company=acme; repeatable", collectPair)
  .option(
    "--person-property <name=value>",
    "property that overrides the stored one, JSON or a string; repeatable",
    collectPair,
  )
  .option("--device-id <id>", "device id, for flags bucketed by device")
  .option("--filters <json>", "evaluate these filters instead, JSON or @FILE; nothing is saved", getFilters)
  .addHelpText(
    "after",
    "\nChanges nothing; works while the server runs.\n\n" +
      "Examples:\n  flagkeep flags explain new-checkout --distinct-id user-1 --group company=acme\n" +
      "  flagkeep flags explain new-checkout --distinct-id user-1 --filters @draft.json",
  )
  .action(
    run((key: string, options: ExplainOptions) =>
      withFlags(options, async (caller) => {
        const body = await (options.filters === undefined
          ? explained(caller, key, options)
          : drafted(key, options));
        if (body.status === "unknown_flag") throw new FlagNotFoundError(key);
        if (options.json) printJson(body);
        else print(formatExplanation(body));
      }),
    ),
  );

async function explained(caller: Caller, key: string, options: ExplainOptions): Promise<Explanation> {
  const { id } = await flagByKey(caller, key);
  const { distinctId: distinct_id, deviceId: device_id } = options;
  const requested = {
    id,
    distinct_id,
    device_id,
    groups: Object.fromEntries(options.group ?? []),
    person_properties: personProperties(options),
  };
  const sent = Object.entries(requested).filter(([, value]) => value !== undefined);
  return (await caller.call(explainOneFlag, Object.fromEntries(sent))) as Explanation;
}

/** @throws {InvalidSettingError} draft filters are evaluated in a data directory only. */
async function drafted(key: string, options: ExplainOptions): Promise<Explanation> {
  if (getServer(options) !== undefined) throw new InvalidSettingError("--filters needs the data directory.");
  return await withProject(options, async ({ metadata, writing, project, persons, flagSets }) => {
    const question = {
      projectId: project.id,
      timezone: project.timezone,
      now: new Date(),
      distinctId: options.distinctId,
      deviceId: options.deviceId,
      groups: Object.fromEntries(options.group ?? []),
      personProperties: personProperties(options),
    };
    const before = findFlagByKey(metadata.db, project.id, key);
    const draft = { projectId: project.id, before, fields: { key, filters: options.filters! } };
    return (await explainDraft({ ...writing, flagSets, persons }, draft, [question]))[0]!;
  });
}

const personProperties = ({ personProperty = [] }: ExplainOptions): JsonObject =>
  Object.fromEntries(personProperty.map(([name, text]) => [name, propertyValue(text)]));

function collectPair(text: string, before: Pair[] | undefined): Pair[] {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("Expected NAME=VALUE, for example plan=pro.");
  return [...(before ?? []), [text.slice(0, equals), text.slice(equals + 1)]];
}

/** Parses `3`, `true` and `["a"]` as JSON; everything else is a string. */
function propertyValue(text: string): Json {
  try {
    return parseExactJson(text) as Json;
  } catch {
    return text;
  }
}
