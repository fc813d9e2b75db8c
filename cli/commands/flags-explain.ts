import type { Static } from "@sinclair/typebox";
import { Command, InvalidArgumentError } from "commander";
import { formatExplanation } from "../../src/flags/api/explanation-text.ts";
import { ExplanationBody } from "../../src/flags/evaluation-context/explanation-shape.ts";
import type { FlagAnswer } from "../../src/flags/fields.ts";
import { parseExactJson } from "../../src/lib/json/exact.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";
import { FlagNotFoundError } from "../../src/operations/flag-argument.ts";
import { explainOneDraft } from "../../src/operations/flag-effects.ts";
import { explainOneFlag, listAllFlags } from "../../src/operations/flags.ts";
import type { Caller } from "../../src/operations/operation.ts";
import { print, printJson, run } from "../output.ts";
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
          : drafted(caller, key, options));
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

/** The value for filters that are not saved, of an existing or a new flag. */
async function drafted(caller: Caller, key: string, options: ExplainOptions): Promise<Explanation> {
  const [saved] = ((await caller.list(listAllFlags, { key })) as FlagAnswer[]).filter(
    (flag) => flag.key === key,
  );
  const { distinctId: distinct_id, deviceId: device_id } = options;
  const subject = {
    distinct_id,
    ...(device_id === undefined ? {} : { device_id }),
    groups: Object.fromEntries(options.group ?? []),
    person_properties: personProperties(options),
  };
  const input = { key, id: saved?.id ?? null, filters: options.filters, subjects: [subject] };
  const { results } = (await caller.call(explainOneDraft, input)) as { results: { draft: Explanation }[] };
  return results[0]!.draft;
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
