/**
 * The fields of a flag, each told once: how clients write it, how answers show it, what else happens to it.
 *
 * What clients may send, what answers, documents and exports hold, what the activity log tells and what two people's
 * edits are compared by all follow from this table. A new field is a line here, a column in `accounts/schema.ts` and a
 * migration.
 *
 * Source: requirement, Feature flag; contract, management-api 3.1, 3.6 and 5.10.
 */

import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { exampleUser, UserBody } from "../accounts/api/user-shapes.ts";
import type { flag } from "../accounts/schema.ts";
import {
  anyJson,
  bool,
  choice,
  dictionary,
  instant,
  int,
  list,
  nullable,
  object,
  optional,
  prose,
  tag,
  text,
} from "../http/shapes.ts";
import { InvalidField } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject, typeName } from "../lib/json.ts";
import { keyLengthMax } from "./rules/key.ts";
import { rolloutPercentageOf } from "./rules/stored-filters.ts";

export type FlagRow = typeof flag.$inferSelect;

/** A flag as the rest of Flagkeep sees it: its row, without the columns that only lists look at. */
export interface Flag extends Omit<FlagRow, "variantCount" | "isFullyRolledOut" | "searchText"> {
  /** Lower case, sorted. */
  tags: string[];
  analyticsDashboards: number[];
}

export const evaluationRuntimes = ["server", "client", "all"] as const;
const bucketingIdentifiers = ["distinct_id", "device_id"] as const;
const creationContexts = [
  "feature_flags",
  "experiments",
  "surveys",
  "early_access_features",
  "web_experiments",
] as const;
const flagStatuses = ["ACTIVE", "INACTIVE", "STALE", "DELETED", "UNKNOWN", "ARCHIVED"] as const;
const evaluationContextsMax = 50;

/** What clients write, but the store holds elsewhere. */
interface WrittenOnly {
  /** Of the only condition set in `filters`; 0 to 100. */
  rolloutPercentage: number;
  /** `evaluationTags` that need not be among the tags. */
  evaluationContexts: string[];
}

/** What is known about a field; the table's keys are the names of the API. */
interface Field {
  /** The member of `Flag` that holds it; absent when it is computed. */
  name?: keyof Flag | keyof WrittenOnly;
  /** What clients may send; absent: nothing. `filters` is checked by the rules of flags, not here. */
  input?: TSchema;
  /** What was sent as the store wants it; undefined leaves the field alone. */
  read?: (sent: Json, wire: string) => unknown;
  /** What answers show; absent: nothing. */
  answer?: TSchema;
  /** The activity log tells when it changes. */
  isTracked?: true;
  /** Two people's edits of it are compared. */
  isChecked?: true;
  /** Documents and exports hold it; documents only when it is not this. */
  usual?: Json;
  /** In the documentation, where `usual` does not do. */
  example?: unknown;
}

const stored = { isTracked: true, isChecked: true } as const;
const unlessNull = (sent: Json) => sent ?? undefined;
const switchedOff = { default: false } as const;

const table = {
  id: { name: "id", answer: int(), example: 12 },
  key: {
    ...stored,
    name: "key",
    input: text({ max: keyLengthMax, description: "Unique in the project; letters, digits, `-` and `_`." }),
    answer: text(),
    example: "one-click-pay",
  },
  name: {
    ...stored,
    name: "name",
    input: optional(prose({ description: "The description of the flag." })),
    answer: text({ blank: true, description: "The description; named so for backwards compatibility." }),
    usual: "",
    example: "Lets people pay with one click",
  },
  filters: {
    ...stored,
    name: "filters",
    input: optional(
      dictionary({
        description:
          "Condition sets (`groups`), variants (`multivariate`), `payloads`; other members are kept as given. Without `groups` the flag is on for nobody.",
      }),
    ),
    answer: dictionary(),
    example: { groups: [{ properties: [], rollout_percentage: 40 }] },
  },
  rollout_percentage: {
    name: "rolloutPercentage",
    isChecked: true,
    input: optional(
      nullable(int({ minimum: 0, maximum: 100 }), {
        description:
          "An integer: of the only condition set, instead of `filters`, or the same number as there. Null, and on PATCH the number that reading returns, change nothing. Fractions are sent in `filters.groups`.",
      }),
    ),
    read: unlessNull,
    answer: nullable(int(), {
      description:
        "Of the only condition set, rounded to an integer; 0 without condition sets, null with several.",
    }),
    example: 40,
  },
  active: {
    ...stored,
    name: "active",
    input: optional(bool({ default: true })),
    answer: bool(),
    usual: true,
  },
  deleted: {
    ...stored,
    name: "deleted",
    input: optional(bool({ default: false, description: "The only way to delete a flag." })),
    answer: bool(),
    example: false,
  },
  ensure_experience_continuity: {
    ...stored,
    name: "ensureExperienceContinuity",
    input: optional(nullable(bool(), switchedOff)),
    answer: nullable(bool()),
    usual: false,
  },
  is_remote_configuration: {
    ...stored,
    name: "isRemoteConfiguration",
    input: optional(nullable(bool(), switchedOff)),
    answer: nullable(bool()),
    usual: false,
  },
  has_encrypted_payloads: {
    ...stored,
    name: "hasEncryptedPayloads",
    input: optional(nullable(bool(), switchedOff)),
    answer: nullable(bool()),
    usual: false,
  },
  has_enriched_analytics: {
    ...stored,
    name: "hasEnrichedAnalytics",
    input: optional(nullable(bool(), switchedOff)),
    answer: nullable(bool()),
    example: false,
  },
  evaluation_runtime: {
    ...stored,
    name: "evaluationRuntime",
    input: optional(nullable(choice(evaluationRuntimes), { default: "all" })),
    answer: nullable(choice(evaluationRuntimes)),
    usual: "all",
  },
  bucketing_identifier: {
    ...stored,
    name: "bucketingIdentifier",
    input: optional(nullable(choice(bucketingIdentifiers), { default: "distinct_id" })),
    answer: nullable(choice(bucketingIdentifiers)),
    usual: "distinct_id",
  },
  tags: {
    ...stored,
    name: "tags",
    input: optional(nullable(list(tag()), { description: "Replaces all tags." })),
    // Null leaves tags alone (contract: management-api 3.2).
    read: unlessNull,
    answer: list(text()),
    usual: [],
    example: ["payments"],
  },
  evaluation_tags: {
    ...stored,
    name: "evaluationTags",
    input: optional(
      nullable(list(tag()), { description: "Some of `tags`; `evaluation_contexts` need not be among them." }),
    ),
    read: unlessNull,
    answer: list(text()),
    usual: [],
  },
  evaluation_contexts: {
    name: "evaluationContexts",
    isChecked: true,
    input: optional(
      nullable(list(tag(), { maxItems: evaluationContextsMax }), {
        description:
          "`evaluation_tags` by their newer name: the flag is evaluated only for callers that name one of them. When both are sent, the one that says something new is taken, this one first. Null says nothing.",
      }),
    ),
    read: unlessNull,
    answer: list(text(), { description: "The same list as `evaluation_tags`." }),
    usual: [],
  },
  experiment_set: {
    ...stored,
    name: "experimentSet",
    input: optional(nullable(list(int()), { description: "Ids, kept as given; null clears." })),
    read: (sent) => sent ?? [],
    answer: list(int()),
    usual: [],
  },
  surveys: {
    ...stored,
    name: "surveys",
    input: optional(anyJson({ description: "A free-form object, kept as given." })),
    read: freeForm,
    answer: dictionary(),
    usual: {},
  },
  features: {
    ...stored,
    name: "features",
    input: optional(anyJson({ description: "A free-form object, kept as given." })),
    read: freeForm,
    answer: dictionary(),
    usual: {},
  },
  rollback_conditions: {
    ...stored,
    name: "rollbackConditions",
    input: optional(anyJson({ description: "Kept as given." })),
    answer: anyJson(),
    usual: null,
  },
  performed_rollback: {
    ...stored,
    name: "performedRollback",
    input: optional(nullable(bool())),
    answer: bool(),
    example: false,
  },
  creation_context: {
    name: "creationContext",
    isTracked: true,
    input: optional(choice(creationContexts, { default: "feature_flags" })),
    answer: choice(creationContexts),
    usual: "feature_flags",
  },
  analytics_dashboards: {
    name: "analyticsDashboards",
    isChecked: true,
    input: optional(list(int(), { description: "Replaces all; ids of the same project." })),
    answer: list(int()),
    example: [],
  },
  usage_dashboard: { name: "usageDashboardId", answer: nullable(int()), example: 31 },
  version: {
    name: "version",
    isTracked: true,
    answer: int({ description: "Rises by one with every change." }),
    example: 3,
  },
  created_by: { answer: nullable(UserBody), example: exampleUser },
  created_at: { answer: instant(), example: "2026-03-02T08:15:30.120000Z" },
  last_modified_by: { answer: nullable(UserBody), example: exampleUser },
  updated_at: { answer: nullable(instant()), example: "2026-03-04T16:00:01.007000Z" },
  last_called_at: { answer: nullable(instant()), example: null },
  is_simple_flag: {
    answer: bool({ description: "One condition set without conditions, counted by person." }),
    example: true,
  },
  local_evaluation_issues: {
    answer: list(text(), {
      description:
        "Why SDKs that evaluate flags themselves ask the server for this flag, or would evaluate it differently; empty: they evaluate it.",
    }),
    example: [],
  },
  can_edit: { answer: bool({ description: "Whether you may change this flag." }), example: true },
  user_access_level: {
    answer: nullable(choice(["none", "viewer", "editor", "manager"])),
    example: "manager",
  },
  status: { answer: choice(flagStatuses), example: "ACTIVE" },
  warnings: {
    answer: optional(
      list(text(), {
        description:
          "Only in the answer to a write: what it could not do, such as remove a payload from backups.",
      }),
    ),
  },
} as const satisfies Record<string, Field>;

type Table = typeof table;
/** The fields of which the table tells something. */
type With<Told extends keyof Field> = {
  [Wire in keyof Table]: Table[Wire] extends Record<Told, unknown> ? Wire : never;
}[keyof Table];
type Told<Wire extends keyof Table, Name extends string> =
  Table[Wire] extends Record<Name, infer What> ? What : never;

/** The fields of a flag that a client may write. */
export type FlagFields = Pick<Flag, Extract<Told<With<"input">, "name">, keyof Flag>> & WrittenOnly;

const fields: readonly (readonly [wire: string, field: Field])[] = Object.entries(table);
const known = (told: keyof Field) => fields.filter(([, field]) => field[told] !== undefined);
const toldOf = (told: "input" | "answer" | "example") =>
  Object.fromEntries(known(told).map(([wire, field]) => [wire, field[told]]));

/** What clients may send. */
export const FlagInput = object(toldOf("input") as Record<string, TSchema>) as unknown as TObject<{
  [Wire in With<"input">]: Told<Wire, "input">;
}>;

/** What answers show. */
export const flagAnswer = toldOf("answer") as { [Wire in With<"answer">]: Told<Wire, "answer"> };

/** A flag in an answer. */
export type FlagAnswer = Static<TObject<typeof flagAnswer>>;

/** The usual values of the fields that documents hold. */
export const flagDefaults: Readonly<JsonObject> = Object.fromEntries(
  known("usual").map(([wire, { usual }]) => [wire, usual!]),
);

export const exampleFlag = { ...flagDefaults, ...toldOf("example") };

/** The fields that are compared when two people edit a flag: names of the API and of the store. */
export const checkedFields = known("isChecked").map(
  ([wire, { name }]) => [wire, name as keyof FlagFields] as const,
);

/** The fields whose changes the activity log tells. */
export const trackedFields = known("isTracked").map(([wire]) => wire);

/** The fields in exports as a table, and what they hold. */
export const exportedFields = [
  ...["key", "name", "filters"].map((wire) => [wire, table[wire as "key"] as Field] as const),
  ...known("usual").filter(([wire]) => wire !== "name"),
].map(([wire, { answer }]) => ({ name: wire, kind: kindOf(answer!), answer: answer! }));

/** The fields that are stored, under the names of the API. */
export function storedFields(flag: Flag): JsonObject {
  const values: JsonObject = {};
  for (const [wire, { name }] of fields) {
    if (name === "rolloutPercentage") values[wire] = rolloutPercentageOf(flag.filters);
    else if (name === "evaluationContexts") values[wire] = flag.evaluationTags;
    else if (name !== undefined) values[wire] = flag[name] as Json;
  }
  return values;
}

/**
 * The fields that were sent, in the names of the store.
 *
 * @param input what `FlagInput` let through.
 * @throws {InvalidField} `surveys` or `features` is neither an object nor empty.
 */
export function flagFields(input: Record<string, unknown>): Partial<FlagFields> {
  const written: Record<string, unknown> = {};
  for (const [wire, { name, read }] of known("input")) {
    const sent = input[wire] as Json | undefined;
    const value = sent === undefined || read === undefined ? sent : read(sent, wire);
    if (value !== undefined) written[name!] = value;
  }
  return written;
}

/** Servers that list surveys here send `[]` for none; a client that echoes that means none as well. */
function freeForm(sent: Json, wire: string): JsonObject {
  if (sent === null || (Array.isArray(sent) && sent.length === 0)) return {};
  if (isJsonObject(sent)) return sent;
  throw new InvalidField(
    wire,
    "not_a_dict",
    `Expected a dictionary of items but got type "${typeName(sent)}".`,
  );
}

function kindOf(schema: TSchema): "boolean" | "text" | "list" | "json" {
  const { type, items } =
    (schema.anyOf as TSchema[] | undefined)?.find((one) => one.type !== "null") ?? schema;
  if (type === "boolean") return "boolean";
  if (type === "string") return "text";
  return type === "array" && items.type === "string" ? "list" : "json";
}
