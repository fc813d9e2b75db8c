/**
 * The fields of a flag, each declared once: how clients write it, how responses show it, and its other uses.
 *
 * Input, responses, documents, exports, the activity log and edit conflicts all derive from this table. A new field is
 * a line here, a column in `accounts/schema.ts` and a migration.
 *
 * Source: requirement, Feature flag; contract, management-api 3.1, 3.6 and 5.10.
 */

import type { Static, TObject, TSchema } from "@sinclair/typebox";
import { exampleUser, UserBody } from "../accounts/api/user-schemas.ts";
import type { flag } from "../accounts/schema.ts";
import {
  anyJson,
  bool,
  dateTime,
  enumeration,
  int,
  list,
  longString,
  nullable,
  object,
  optional,
  record,
  string,
  tag,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject, typeName } from "../lib/json/value.ts";
import { keyLengthMax } from "./rules/key.ts";
import { getRolloutPercentage } from "./rules/stored-filters.ts";

export type FlagRow = typeof flag.$inferSelect;

/** A flag in the rest of Flagkeep: its row, without the columns that only lists use. */
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

/** Fields that clients write, but that are stored elsewhere. */
interface WrittenOnly {
  /** Of the only condition set in `filters`; 0 to 100. */
  rolloutPercentage: number;
  /** `evaluationTags` that need not be among the tags. */
  evaluationContexts: string[];
}

/** Declaration of a field; the table's keys are the names of the API. */
interface Field {
  /** The member of `Flag` that contains it; absent when it is computed. */
  name?: keyof Flag | keyof WrittenOnly;
  /** Accepted input; absent: none. The rules of flags check `filters`, not this schema. */
  input?: TSchema;
  /** Converts input for the store; undefined leaves the field unchanged. */
  read?: (sent: Json, wire: string) => unknown;
  /** Schema in responses; absent: not shown. */
  answer?: TSchema;
  /** The activity log records its changes. */
  isTracked?: true;
  /** Concurrent edits of it can conflict. */
  isChecked?: true;
  /** Documents and exports contain it; documents omit this default value. */
  default?: Json;
  /** Example in the documentation, if `usual` is not suitable. */
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
    input: string({ max: keyLengthMax, description: "Unique in the project; letters, digits, `-` and `_`." }),
    answer: string(),
    example: "one-click-pay",
  },
  name: {
    ...stored,
    name: "name",
    input: optional(longString({ description: "The description of the flag." })),
    answer: string({ blank: true, description: "The description; legacy name." }),
    default: "",
    example: "Lets people pay with one click",
  },
  filters: {
    ...stored,
    name: "filters",
    input: optional(
      record({
        description:
          "Condition sets (`groups`), variants (`multivariate`), `payloads`; other members are kept as given. Without `groups` the flag is off for everyone.",
      }),
    ),
    answer: record(),
    example: { groups: [{ properties: [], rollout_percentage: 40 }] },
  },
  rollout_percentage: {
    name: "rolloutPercentage",
    isChecked: true,
    input: optional(
      nullable(int({ minimum: 0, maximum: 100 }), {
        description:
          "Rollout percentage of the only condition set, an integer: an alternative to `filters`. Null, and on PATCH the current number, change nothing. Send fractions in `filters.groups`.",
      }),
    ),
    read: unlessNull,
    answer: nullable(int(), {
      description:
        "Rollout percentage of the only condition set, rounded to an integer; 0 without condition sets, null with several.",
    }),
    example: 40,
  },
  active: {
    ...stored,
    name: "active",
    input: optional(bool({ default: true })),
    answer: bool(),
    default: true,
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
    default: false,
  },
  is_remote_configuration: {
    ...stored,
    name: "isRemoteConfiguration",
    input: optional(nullable(bool(), switchedOff)),
    answer: nullable(bool()),
    default: false,
  },
  has_encrypted_payloads: {
    ...stored,
    name: "hasEncryptedPayloads",
    input: optional(nullable(bool(), switchedOff)),
    answer: nullable(bool()),
    default: false,
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
    input: optional(nullable(enumeration(evaluationRuntimes), { default: "all" })),
    answer: nullable(enumeration(evaluationRuntimes)),
    default: "all",
  },
  bucketing_identifier: {
    ...stored,
    name: "bucketingIdentifier",
    input: optional(nullable(enumeration(bucketingIdentifiers), { default: "distinct_id" })),
    answer: nullable(enumeration(bucketingIdentifiers)),
    default: "distinct_id",
  },
  tags: {
    ...stored,
    name: "tags",
    input: optional(nullable(list(tag()), { description: "Replaces all tags." })),
    // Null leaves tags unchanged (contract: management-api 3.2).
    read: unlessNull,
    answer: list(string()),
    default: [],
    example: ["payments"],
  },
  evaluation_tags: {
    ...stored,
    name: "evaluationTags",
    input: optional(
      nullable(list(tag()), { description: "Some of `tags`; `evaluation_contexts` need not be among them." }),
    ),
    read: unlessNull,
    answer: list(string()),
    default: [],
  },
  evaluation_contexts: {
    name: "evaluationContexts",
    isChecked: true,
    input: optional(
      nullable(list(tag(), { maxItems: evaluationContextsMax }), {
        description:
          "Current name of `evaluation_tags`: the flag is evaluated only for requests with one of these tags. If both are sent, the changed one applies, this one first. Null changes nothing.",
      }),
    ),
    read: unlessNull,
    answer: list(string(), { description: "The same list as `evaluation_tags`." }),
    default: [],
  },
  experiment_set: {
    ...stored,
    name: "experimentSet",
    input: optional(nullable(list(int()), { description: "Ids, stored as sent; null clears them." })),
    read: (sent) => sent ?? [],
    answer: list(int()),
    default: [],
  },
  surveys: {
    ...stored,
    name: "surveys",
    input: optional(anyJson({ description: "Any object, stored as sent." })),
    read: freeForm,
    answer: record(),
    default: {},
  },
  features: {
    ...stored,
    name: "features",
    input: optional(anyJson({ description: "Any object, stored as sent." })),
    read: freeForm,
    answer: record(),
    default: {},
  },
  rollback_conditions: {
    ...stored,
    name: "rollbackConditions",
    input: optional(
      anyJson({ description: "Stored as sent; the forms of the contract switch the flag off." }),
    ),
    answer: anyJson(),
    default: null,
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
    input: optional(enumeration(creationContexts, { default: "feature_flags" })),
    answer: enumeration(creationContexts),
    default: "feature_flags",
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
    answer: int({ description: "Incremented with every change." }),
    example: 3,
  },
  created_by: { answer: nullable(UserBody), example: exampleUser },
  created_at: { answer: dateTime(), example: "2026-03-02T08:15:30.120000Z" },
  last_modified_by: { answer: nullable(UserBody), example: exampleUser },
  updated_at: { answer: nullable(dateTime()), example: "2026-03-04T16:00:01.007000Z" },
  last_called_at: { answer: nullable(dateTime()), example: null },
  is_simple_flag: {
    answer: bool({ description: "True for one condition set without conditions, bucketed by person." }),
    example: true,
  },
  local_evaluation_issues: {
    answer: list(string(), {
      description:
        "Reasons why local evaluation is not possible or would differ; empty: SDKs evaluate the flag locally.",
    }),
    example: [],
  },
  can_edit: {
    answer: bool({ description: "True if you have permission to edit this flag." }),
    example: true,
  },
  user_access_level: {
    answer: nullable(enumeration(["none", "viewer", "editor", "manager"])),
    example: "manager",
  },
  status: { answer: enumeration(flagStatuses), example: "ACTIVE" },
  warnings: {
    answer: optional(
      list(string(), {
        description:
          "Only if there are any: payloads that cannot be decrypted and, in responses to writes, limitations such as payloads that remain in backups.",
      }),
    ),
  },
} as const satisfies Record<string, Field>;

type Table = typeof table;
/** The fields with this attribute in the table. */
type FieldsHaving<Attribute extends keyof Field> = {
  [Wire in keyof Table]: Table[Wire] extends Record<Attribute, unknown> ? Wire : never;
}[keyof Table];
type AttributeOf<Wire extends keyof Table, Name extends string> =
  Table[Wire] extends Record<Name, infer What> ? What : never;

/** The fields of a flag that a client may write. */
export type FlagFields = Pick<Flag, Extract<AttributeOf<FieldsHaving<"input">, "name">, keyof Flag>> &
  WrittenOnly;

const fields: readonly (readonly [wire: string, field: Field])[] = Object.entries(table);
const known = (attribute: keyof Field) => fields.filter(([, field]) => field[attribute] !== undefined);
const getAttribute = (attribute: "input" | "answer" | "example") =>
  Object.fromEntries(known(attribute).map(([wire, field]) => [wire, field[attribute]]));

export const FlagInput = object(getAttribute("input") as Record<string, TSchema>) as unknown as TObject<{
  [Wire in FieldsHaving<"input">]: AttributeOf<Wire, "input">;
}>;

export const flagAnswer = getAttribute("answer") as {
  [Wire in FieldsHaving<"answer">]: AttributeOf<Wire, "answer">;
};

/** A flag in a response. */
export type FlagAnswer = Static<TObject<typeof flagAnswer>>;

/** The default values of the fields in documents. */
export const flagDefaults: Readonly<JsonObject> = Object.fromEntries(
  known("default").map(([wire, { default: defaultValue }]) => [wire, defaultValue!]),
);

export const exampleFlag = { ...flagDefaults, ...getAttribute("example") };

/** The fields compared for edit conflicts: names of the API and of the store. */
export const checkedFields = known("isChecked").map(
  ([wire, { name }]) => [wire, name as keyof FlagFields] as const,
);

/** The fields whose changes the activity log records. */
export const trackedFields = known("isTracked").map(([wire]) => wire);

/** The fields in table exports, and their contents. */
export const exportedFields = [
  ...["key", "name", "filters"].map((wire) => [wire, table[wire as "key"] as Field] as const),
  ...known("default").filter(([wire]) => wire !== "name"),
].map(([wire, { answer }]) => ({ name: wire, kind: getKind(answer!), answer: answer! }));

/** The stored fields, with the names of the API. */
export function storedFields(flag: Flag): JsonObject {
  const values: JsonObject = {};
  for (const [wire, { name }] of fields) {
    if (name === "rolloutPercentage") values[wire] = getRolloutPercentage(flag.filters);
    else if (name === "evaluationContexts") values[wire] = flag.evaluationTags;
    else if (name !== undefined) values[wire] = flag[name] as Json;
  }
  return values;
}

/**
 * The fields that were sent, with the names of the store.
 *
 * @param input validated by `FlagInput`.
 * @throws {InvalidFieldError} `surveys` or `features` is neither an object nor empty.
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

/** Servers that list surveys here send `[]` for none; a client that sends that back means none too. */
function freeForm(sent: Json, wire: string): JsonObject {
  if (sent === null || (Array.isArray(sent) && sent.length === 0)) return {};
  if (isJsonObject(sent)) return sent;
  throw new InvalidFieldError(
    wire,
    "not_a_dict",
    `Expected a dictionary of items but got type "${typeName(sent)}".`,
  );
}

function getKind(schema: TSchema): "boolean" | "text" | "list" | "json" {
  const { type, items } =
    (schema.anyOf as TSchema[] | undefined)?.find((item) => item.type !== "null") ?? schema;
  if (type === "boolean") return "boolean";
  if (type === "string") return "text";
  return type === "array" && items.type === "string" ? "list" : "json";
}
