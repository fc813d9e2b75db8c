/** What flags do and would do: calls by value, blast radius, and values of drafts. They need the events, so a server. */

import type { Static } from "@sinclair/typebox";
import { findUser } from "../accounts/users.ts";
import { CohortBody, cohortBody, exampleCohort } from "../cohorts/api/cohort-schemas.ts";
import { type CalculationDeps, calculateInBackground } from "../cohorts/cohort-calculation.ts";
import { createCohort, findCohort } from "../cohorts/cohorts.ts";
import {
  type BlastRadiusCounter,
  BlastRadiusInput,
  BlastRadiusResponse,
  exampleBlastRadiusInput,
} from "../flags/api/blast-radius.ts";
import { ExplanationSchema, exampleExplanation } from "../flags/api/explain-route.ts";
import { flagTag as tag } from "../flags/api/feature-flags.ts";
import {
  BlastRadiusOfDraft,
  DraftBlastRadius,
  type DraftDeps,
  DraftInput,
  exampleBlastRadiusOfDraft,
  exampleFilters,
  explainDraftFor,
  getBlastRadius,
} from "../flags/api/flag-drafts.ts";
import {
  countFlagCalls,
  type FlagCallCounter,
  readUsageQuery,
  UsageBody,
  UsageQuery,
} from "../flags/api/flag-usage.ts";
import { checkingAsSaving } from "../flags/evaluation-context/draft.ts";
import type { FlagAnswer } from "../flags/fields.ts";
import { parseBlastRadius } from "../flags/rules/blast-radius.ts";
import { withoutDisplayNames } from "../flags/store/flag-conflicts.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { unavailable } from "../http/error-mapping.ts";
import { int, list, nullable, object } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { getEditableFlag } from "./flag-actor.ts";
import { flagArgument } from "./flag-argument.ts";
import { byKey, keyArgument } from "./flag-tools.ts";
import { listAllFlags } from "./flags.ts";
import { type CommandArgument, getAuthor, operation, type ProjectContext } from "./operation.ts";

/** Counts of events and persons; absent in a data directory. */
interface CounterDeps {
  personCounter?: BlastRadiusCounter & FlagCallCounter;
}
type Context = ProjectContext<FlagWriteDeps & CounterDeps>;

/** @throws {InvalidFieldError} the operation was called in a data directory. */
function getCounter({ personCounter }: CounterDeps): BlastRadiusCounter & FlagCallCounter {
  if (personCounter !== undefined) return personCounter;
  throw new InvalidFieldError(null, "unavailable", "Counts require a running server. Use --url.");
}

type Usage = Static<typeof UsageBody>;

const countUsage = operation({
  id: "flags.usage",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Count flag evaluations",
  description: "By value and day, from the events `$feature_flag_called` that SDKs send.",
  http: {
    method: "GET",
    path: "/feature_flags/usage",
    answer: "One result per flag, in the order of the ids.",
    errors: unavailable,
  },
  cli: {
    name: "flags usage",
    description: "Count the evaluations of a flag by value and day.",
    examples: ["flags usage new-checkout --days 7 --url http://127.0.0.1:8000"],
    arguments: [flagArgument("ids")],
    options: { days: { flags: "--days <number>", description: "number of days; default: 14" } },
    done: usageLines,
  },
  mcp: {
    name: "flag_usage",
    description: "Count the evaluations of a flag by value and day.",
    target: byKey(() => listAllFlags, undefined, "ids"),
    arguments: { key: keyArgument, days: UsageQuery.properties.days },
  },
  input: UsageQuery,
  output: UsageBody,
  example: {
    days: ["2026-03-03", "2026-03-04"],
    results: [
      {
        id: 12,
        key: "one-click-pay",
        last_called_at: "2026-03-04T16:00:01.007000Z",
        total: 42,
        values: [{ value: "true", total: 42, counts: [30, 12] }],
      },
    ],
  },
  readQuery: readUsageQuery,
  run: async ({ stores, project, now }: Context, input) => {
    const { ids, days } = input as unknown as ReturnType<typeof readUsageQuery>;
    const { metadata } = stores;
    return await countFlagCalls(
      { metadata, personCounter: getCounter(stores) },
      { project, now },
      { ids, days },
    );
  },
});

function usageLines({ days, results }: Usage): string {
  return results
    .flatMap(({ key, total, values }) => [
      `${key}: ${total} evaluations from ${days[0]} to ${days.at(-1)}`,
      ...values.map(({ value, total, counts }) => `  ${value}: ${total} (${counts.join(", ")})`),
    ])
    .join("\n");
}

const countBlastRadius = operation({
  id: "flags.user_blast_radius",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Count the persons a condition matches",
  description:
    "Changes nothing; validated like a save. Accepts the fields of a flag (all condition sets of `filters` in total), or one `condition`.",
  http: {
    method: "POST",
    path: "/feature_flags/user_blast_radius",
    answer: "The counts.",
    errors: unavailable,
  },
  input: BlastRadiusInput,
  inputExample: exampleBlastRadiusInput,
  output: BlastRadiusResponse,
  example: { users_affected: 3, total_users: 10, affected: 3, total: 10 },
  run: async ({ stores, project }: Context, input) => {
    const question = parseBlastRadius(input as never, checkingAsSaving(stores, project.id));
    const { total, matching, reached } = await getCounter(stores).blastRadius(project.id, question);
    const affected = input.apply_rollout === true ? reached : matching;
    return { users_affected: affected, total_users: total, affected, total };
  },
});

const createCohortOfFlag = operation({
  id: "flags.create_cohort",
  on: "project",
  scope: "feature_flag:write",
  tag,
  summary: "Create a static cohort from a flag",
  description:
    "The body is ignored. The cohort is calculated in the background and independent of later changes to the flag.",
  http: {
    method: "POST",
    path: "/feature_flags/:id/create_static_cohort_for_flag",
    status: 201,
    answer: "The new cohort, still empty.",
  },
  input: object({ id: int() }),
  output: object({ cohort: CohortBody }),
  example: { cohort: { ...exampleCohort, is_static: true, filters: { properties: {} } } },
  run: (context: ProjectContext<FlagWriteDeps & CalculationDeps>, input) => {
    const { stores, project, actor, now } = context;
    const flag = getEditableFlag(context, input.id);
    const at = now.toISOString().slice(0, 19).replace("T", " ");
    const name = `Users with feature flag ${flag.key} enabled at ${at}`;
    const target = { projectId: project.id, by: getAuthor(actor), fields: { name, isStatic: true } };
    const { id } = createCohort(stores.metadata, target, now);
    void calculateInBackground(stores, id, () =>
      stores.cohortFiller.addPersonsWithFlag(project.id, id, flag.id),
    );
    const { db } = stores.metadata;
    const cohort = findCohort(db, project.id, id)!;
    const creator = cohort.createdById === null ? undefined : findUser(db, cohort.createdById);
    return { cohort: cohortBody(cohort, creator) };
  },
});

export const explainOneDraft = operation({
  id: "flags.explain_draft",
  on: "project",
  scope: "feature_flag:read",
  tag: "Flag evaluation",
  summary: "Explain a flag draft for persons",
  description:
    "Validated like a save, without storing. With `id` the draft is based on that flag: omitted fields are as saved, and `saved` has its current value. Up to 20 subjects.",
  http: {
    method: "POST",
    path: "/feature_flags/explain",
    answer: "One result per subject, in request order.",
    errors: { 404: { description: "The flag does not exist." } },
  },
  input: DraftInput,
  inputExample: { key: "one-click-pay", filters: exampleFilters, subjects: [{ distinct_id: "user-1" }] },
  output: object({
    results: list(object({ draft: ExplanationSchema, saved: nullable(ExplanationSchema) })),
  }),
  example: { results: [{ draft: exampleExplanation, saved: null }] },
  run: async ({ stores, project, now }: ProjectContext<Omit<DraftDeps, "personCounter">>, input) =>
    (await explainDraftFor(stores, { project, now }, input)) as never,
});

type Reach = Static<typeof DraftBlastRadius>;
/** The flag whose filters are counted. */
const keyOfCounted: CommandArgument = {
  name: "key",
  description: "flag key",
  member: "key",
  lookup: { ...flagArgument("key").lookup!, value: ({ key }: FlagAnswer) => key },
};

const countDraft = operation({
  id: "flags.reach",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "Compute the blast radius",
  description:
    "For each condition set of `filters` and in total, with rollouts and variant distribution. Changes nothing. Validated like a save.",
  http: { method: "POST", path: "/feature_flags/reach", answer: "The counts.", errors: unavailable },
  mcp: {
    name: "flag_blast_radius",
    description: "Count the persons or groups that release conditions match and reach. Changes nothing.",
  },
  input: BlastRadiusOfDraft,
  inputExample: { key: "one-click-pay", filters: exampleFilters },
  output: DraftBlastRadius,
  example: exampleBlastRadiusOfDraft,
  run: async ({ stores, project }: Context, input) => {
    const { filters, key = "" } = input;
    const deps = { ...getDeps(stores), personCounter: getCounter(stores) };
    return await getBlastRadius(deps, project.id, filters as JsonObject, key);
  },
});

/** Stores are getters in a data directory, which a spread would open. */
const getDeps = ({ metadata, payloads, groupTypes }: FlagWriteDeps) => ({ metadata, payloads, groupTypes });

/** A command of its own, for the stored conditions of a flag. */
const blastRadiusCommand = {
  ...countDraft,
  input: object({ key: BlastRadiusOfDraft.properties.key }),
  cli: {
    name: "flags blast-radius",
    description: "Count the persons or groups that a flag's conditions match and reach.",
    examples: ["flags blast-radius new-checkout --url http://127.0.0.1:8000"],
    arguments: [keyOfCounted],
    adds: ({ key }: { key: FlagAnswer }) => ({ filters: withoutDisplayNames(key.filters) }),
    done: ({ populations, sets, variants }: Reach) =>
      [
        ...populations.map(
          ({ group_type_index: type, ...counted }) =>
            `${type === null ? "Persons" : `Groups of type ${type}`}: ${countWords(counted)}`,
        ),
        ...sets.map(({ index, ...counted }) => `Condition set ${index + 1}: ${countWords(counted)}`),
        ...variants.map(({ key, reached }) => `Variant ${key}: ${reached} reached`),
      ].join("\n"),
  },
};

const countWords = ({ total, matching, reached }: { total: number; matching: number; reached: number }) =>
  `${matching} of ${total} match, ${reached} reached`;

export const flagEffectCommands = [blastRadiusCommand];

/** In the order of the documentation. */
export const flagEffectOperations = [
  countBlastRadius,
  createCohortOfFlag,
  explainOneDraft,
  countDraft,
  countUsage,
];
