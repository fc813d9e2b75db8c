import { Command, InvalidArgumentError } from "commander";
import { explanationText } from "../../src/flags/api/explanation-text.ts";
import { findFlagByKey } from "../../src/flags/store/flag.ts";
import { explainDraft } from "../../src/flags/subject/draft.ts";
import { explainFlag } from "../../src/flags/subject/explanation.ts";
import { ExplanationBody } from "../../src/flags/subject/explanation-shape.ts";
import type { Json, JsonObject } from "../../src/lib/json.ts";
import { withJson } from "../json-shape.ts";
import { positiveInteger, print, printJson, run } from "../output.ts";
import { withSettings } from "../settings.ts";
import { withProject } from "../stores.ts";
import { filtersOf, NoSuchFlag } from "./flags-common.ts";

type Pair = [name: string, value: string];

interface ExplainOptions {
  distinctId: string;
  group?: Pair[];
  personProperty?: Pair[];
  deviceId?: string;
  filters?: JsonObject;
  project?: number;
  json?: true;
}

export const explain = withJson(
  withSettings(new Command("explain"), ["data-dir"]),
  ExplanationBody,
  "print the explanation as JSON, as the API returns it",
)
  .description("Explain a flag's value for a user.")
  .argument("<key>", "flag key")
  .requiredOption("--distinct-id <id>", "distinct id of the user")
  .option("--group <type=key>", "group, for example company=acme; repeatable", collectPair)
  .option(
    "--person-property <name=value>",
    "property that overrides the stored one, JSON or text; repeatable",
    collectPair,
  )
  .option("--device-id <id>", "device id, for flags bucketed by device")
  .option("--filters <json>", "evaluate these filters instead, JSON or @FILE; nothing is saved", filtersOf)
  .option("--project <id>", "project id; optional if there is one project", positiveInteger)
  .addHelpText(
    "after",
    "\nChanges nothing; works while the server runs.\n\n" +
      "Examples:\n  flagkeep flags explain new-checkout --distinct-id user-1 --group company=acme\n" +
      "  flagkeep flags explain new-checkout --distinct-id user-1 --filters @draft.json",
  )
  .action(
    run((key: string, options: ExplainOptions) => {
      const body = withProject(options, ({ metadata, writing, project, people, flagSets }) => {
        const question = {
          projectId: project.id,
          timezone: project.timezone,
          distinctId: options.distinctId,
          groups: Object.fromEntries(options.group ?? []),
          personProperties: Object.fromEntries(
            (options.personProperty ?? []).map(([name, text]) => [name, propertyValue(text)]),
          ),
          deviceId: options.deviceId,
          now: new Date(),
        };
        const { filters } = options;
        if (filters === undefined)
          return explainFlag(people, flagSets.of(project.id).set, { ...question, flagKey: key });
        const before = findFlagByKey(metadata.db, project.id, key);
        const draft = { projectId: project.id, before, fields: { key, filters } };
        return explainDraft({ ...writing, flagSets, people }, draft, [question])[0]!;
      });
      if (body.status === "unknown_flag") throw new NoSuchFlag(key);
      if (options.json) printJson(body);
      else print(explanationText(body));
    }),
  );

function collectPair(text: string, before: Pair[] | undefined): Pair[] {
  const equals = text.indexOf("=");
  if (equals < 1) throw new InvalidArgumentError("It must be such as name=value.");
  return [...(before ?? []), [text.slice(0, equals), text.slice(equals + 1)]];
}

/** `3`, `true` and `["a"]` are what they look like; everything else is text. */
function propertyValue(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
