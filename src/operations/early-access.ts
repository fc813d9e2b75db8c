/** Early access features (contract: experiments 1.4). */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../accounts/api/user-schemas.ts";
import { userFinder } from "../accounts/users.ts";
import {
  createFeature,
  deleteFeature,
  enrollmentProperty,
  type Feature,
  getFeature,
  listFeatures,
  type Stage,
  stages,
  updateFeature,
} from "../early-access/features.ts";
import { getFlag } from "../experiments/flag-changes.ts";
import { flagAnswers } from "../flags/api/feature-flags.ts";
import { FlagBody } from "../flags/api/flag-schemas.ts";
import { exampleFlag } from "../flags/fields.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  pageOf,
  record,
  string,
  uuid,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import { toApiTime } from "../lib/time.ts";
import type { Person } from "../persons/person.ts";
import { getExperimentActor } from "./experiment-list.ts";
import {
  type CommandArgument,
  type Lookup,
  listOperation,
  operation,
  type ProjectContext,
  slicePage,
} from "./operation.ts";

const tag = "Early access features";

/** What enrollment needs of a running server. */
export interface EnrollmentDeps {
  enrollment?: {
    /** Persons that match all filters. */
    find(
      projectId: number,
      filters: readonly JsonObject[],
      page: { afterId?: number; limit: number },
    ): Promise<Person[]>;
    /** Captures an event of the project. */
    capture(projectToken: string, event: JsonObject): Promise<void>;
  };
}
type Context = ProjectContext<FlagWriteDeps & EnrollmentDeps>;

const FeatureBody = named(
  "EarlyAccessFeature",
  object({
    id: uuid(),
    name: string(),
    description: string({ blank: true }),
    stage: enumeration(stages),
    documentation_url: string({ blank: true }),
    payload: record(),
    feature_flag: FlagBody,
    created_at: dateTime(),
    created_by: nullable(UserBody),
  }),
);
type FeatureRecord = Static<typeof FeatureBody>;

const example = {
  id: "0193d1a2-7b1c-7c3e-9f60-5a6b7c8d9e0f",
  name: "New editor",
  description: "Write with others.",
  stage: "beta",
  documentation_url: "https://example.com/editor",
  payload: {},
  feature_flag: exampleFlag,
  created_at: "2026-03-02T08:15:30.120000Z",
  created_by: exampleUser,
};

const editable = {
  description: optional(nullable(string({ blank: true, max: 10_000 }))),
  documentation_url: optional(nullable(string({ blank: true, max: 800, description: "http or https." }))),
  payload: optional(nullable(record())),
};

const body = (context: Context, feature: Feature) => bodyWriter(context)(feature);

/** Writes the features of one response: permissions, users and the definitions of flags are read once. */
function bodyWriter(context: Context): (feature: Feature) => FeatureRecord {
  const { stores } = context;
  const { db } = stores.metadata;
  const answers = flagAnswers(stores, getExperimentActor(context));
  const users = userFinder(db);
  return (feature) => {
    const creator = users(feature.createdById);
    return {
      id: feature.id,
      name: feature.name,
      description: feature.description,
      stage: feature.stage as Stage,
      documentation_url: feature.documentationUrl,
      payload: feature.payload,
      feature_flag: answers.one(getFlag(db, feature)),
      created_at: toApiTime(feature.createdAt),
      created_by: creator ? userBody(creator) : null,
    };
  };
}

const byName: Lookup = {
  in: () => listAllFeatures,
  matches: (feature: FeatureRecord, argument) =>
    feature.id === argument || feature.name === argument || feature.feature_flag.key === argument,
  value: (feature: FeatureRecord) => feature.id,
  missing: (argument) => `Early access feature ${argument} does not exist.`,
};
const featureArgument: CommandArgument = {
  name: "feature",
  description: "id, name or flag key",
  member: "id",
  lookup: byName,
};

const listAllFeatures = listOperation({
  id: "features.list",
  on: "project",
  scope: "early_access_feature:read",
  tag,
  summary: "List early access features",
  mcp: { name: "list_early_access_features" },
  http: { method: "GET", path: "/early_access_feature", answer: "One page of features." },
  cli: {
    name: "features list",
    examples: ["features list --json"],
    table: {
      headings: ["id", "name", "stage", "flag"],
      row: (feature: FeatureRecord) => [feature.id, feature.name, feature.stage, feature.feature_flag.key],
    },
  },
  input: object({}),
  output: pageOf("EarlyAccessFeaturePage", FeatureBody),
  example,
  run: (context: Context, { limit, offset }) => {
    const all = listFeatures(context.stores.metadata.db, context.project.id);
    return slicePage(all, { limit, offset }, bodyWriter(context));
  },
});

/** @throws {InvalidFieldError} */
function parsePayload(argument: string): JsonObject {
  try {
    const payload: unknown = parseExactJson(argument);
    if (isJsonObject(payload)) return payload;
  } catch {}
  throw new InvalidFieldError("payload", "invalid_input", "--payload must be a JSON object.");
}

export const createNewFeature = operation({
  id: "features.create",
  on: "project",
  scope: "early_access_feature:write",
  tag,
  summary: "Create an early access feature",
  description: "Without `feature_flag_id` a flag is created that is off for everyone who is not enrolled.",
  http: { method: "POST", path: "/early_access_feature", status: 201, answer: "The new feature." },
  cli: {
    name: "features create",
    examples: ["features create 'New editor' --stage beta"],
    arguments: [{ name: "name", description: "display name", member: "name" }],
    options: {
      payload: {
        flags: "--payload <json>",
        description: "JSON object for clients",
        parse: parsePayload,
      },
    },
    hasCreator: true,
    hasFile: true,
    done: (feature: FeatureRecord) =>
      `Early access feature ${feature.name} created with the flag ${feature.feature_flag.key}.`,
  },
  input: object({
    name: string({ max: 200 }),
    stage: enumeration(stages),
    ...editable,
    feature_flag_id: optional(
      nullable(int({ description: "An existing flag without variants and groups." })),
    ),
  }),
  inputExample: { name: "New editor", stage: "beta" },
  output: FeatureBody,
  example,
  run: (context: Context, input) =>
    body(context, createFeature(context.stores, getExperimentActor(context), input)),
});

const getOneFeature = operation({
  id: "features.get",
  on: "project",
  scope: "early_access_feature:read",
  tag,
  summary: "Get an early access feature",
  http: { method: "GET", path: "/early_access_feature/:id", answer: "The feature." },
  input: object({ id: uuid() }),
  output: FeatureBody,
  example,
  run: (context: Context, { id }) =>
    body(context, getFeature(context.stores.metadata.db, context.project.id, id)),
});

const updateOneFeature = operation({
  id: "features.update",
  on: "project",
  scope: "early_access_feature:write",
  tag,
  summary: "Update an early access feature",
  description:
    "In the stages concept, alpha, beta and general-availability the flag is on for enrolled persons.",
  http: { method: "PATCH", path: "/early_access_feature/:id", answer: "The feature." },
  input: object({
    id: uuid(),
    name: optional(string({ max: 200 })),
    stage: optional(enumeration(stages)),
    ...editable,
  }),
  inputExample: { stage: "general-availability" },
  output: FeatureBody,
  example,
  run: (context: Context, { id, ...input }) =>
    body(context, updateFeature(context.stores, getExperimentActor(context), id, input)),
});

/** A command of its own, with the stage as argument; the route is that of `features.update`. */
export const setStage = {
  ...updateOneFeature,
  id: "features.stage",
  mcp: {
    name: "set_early_access_stage",
    description: "Set the stage of an early access feature, by its id.",
  },
  cli: {
    name: "features stage",
    description: "Set the stage of an early access feature.",
    examples: ["features stage new-editor general-availability"],
    arguments: [featureArgument, { name: "stage", description: stages.join(", "), member: "stage" }],
    done: (feature: FeatureRecord) => `Early access feature ${feature.name} is in stage ${feature.stage}.`,
  },
  input: object({ id: uuid(), stage: enumeration(stages) }),
};

const deleteOneFeature = operation({
  id: "features.delete",
  on: "project",
  scope: "early_access_feature:write",
  tag,
  summary: "Delete an early access feature",
  description: "Its flag stays and no longer follows enrollment.",
  http: { method: "DELETE", path: "/early_access_feature/:id" },
  input: object({ id: uuid() }),
  run: (context: Context, { id }) => deleteFeature(context.stores, getExperimentActor(context), id),
});

/** Persons that one answer lists. */
const enrolledMax = 1_000;

const getEnrollment = operation({
  id: "features.enrollment",
  on: "project",
  scope: "early_access_feature:read",
  tag,
  summary: "List the enrolled persons of an early access feature",
  description: `Persons whose property is true now. At most ${enrolledMax.toLocaleString("en-US")} are listed.`,
  http: { method: "GET", path: "/early_access_feature/:id/enrollment", answer: "Count and persons." },
  input: object({ id: uuid() }),
  output: object({
    enrolled: int(),
    opted_out: int(),
    is_truncated: bool(),
    persons: list(object({ uuid: uuid(), distinct_id: string({ blank: true }) })),
  }),
  example: {
    enrolled: 1,
    opted_out: 0,
    is_truncated: false,
    persons: [{ uuid: "0193d1a2-7b1c-7c3e-9f60-1f4f5d2b8a11", distinct_id: "user-1" }],
  },
  run: async (context: Context, { id }) => {
    const { stores, project } = context;
    const { find } = getServer(stores);
    const key = enrollmentProperty(
      getFlag(stores.metadata.db, getFeature(stores.metadata.db, project.id, id)).key,
    );
    const withValue = (value: string) =>
      find(project.id, [{ key, type: "person", operator: "exact", value: [value] }], {
        limit: enrolledMax + 1,
      });
    const enrolled = await withValue("true");
    const optedOut = await withValue("false");
    return {
      enrolled: Math.min(enrolled.length, enrolledMax),
      opted_out: Math.min(optedOut.length, enrolledMax),
      is_truncated: enrolled.length > enrolledMax,
      persons: enrolled
        .slice(0, enrolledMax)
        .map(({ uuid, mainDistinctId }) => ({ uuid, distinct_id: mainDistinctId })),
    };
  },
});

const enrollPerson = operation({
  id: "features.enroll",
  on: "project",
  scope: "early_access_feature:write",
  tag,
  summary: "Enroll a person in an early access feature",
  description: "Captures `$feature_enrollment_update` for the person, as SDKs do.",
  http: {
    method: "POST",
    path: "/early_access_feature/:id/enroll",
    status: 200,
    answer: "The event was captured.",
  },
  cli: {
    name: "features enroll",
    description: "Enroll a person in an early access feature, or with --no-enrolled opt the person out.",
    examples: ["features enroll new-editor user-1 --url http://127.0.0.1:8000"],
    arguments: [
      featureArgument,
      { name: "distinct-id", description: "distinct ID of the person", member: "distinct_id" },
    ],
    done: ({ distinct_id: distinctId, enrolled }: { distinct_id: string; enrolled: boolean }) =>
      `${distinctId} is ${enrolled ? "enrolled" : "not enrolled"}.`,
  },
  input: object({
    id: uuid(),
    distinct_id: string({ max: 400 }),
    enrolled: optional(bool({ default: true })),
  }),
  inputExample: { distinct_id: "user-1", enrolled: true },
  output: object({ distinct_id: string(), enrolled: bool() }),
  example: { distinct_id: "user-1", enrolled: true },
  run: async (context: Context, { id, distinct_id: distinctId, enrolled = true }) => {
    const { stores, project } = context;
    const { key } = getFlag(stores.metadata.db, getFeature(stores.metadata.db, project.id, id));
    await getServer(stores).capture(project.apiToken, {
      event: "$feature_enrollment_update",
      distinct_id: distinctId,
      properties: {
        $feature_flag: key,
        $feature_enrollment: enrolled,
        $set: { [enrollmentProperty(key)]: enrolled },
      },
    });
    return { distinct_id: distinctId, enrolled };
  },
});

function getServer({ enrollment }: EnrollmentDeps) {
  if (enrollment !== undefined) return enrollment;
  throw new InvalidFieldError(null, "unavailable", "Enrollment requires a running server. Use --url.");
}

/** In the order of the documentation. */
export const earlyAccessOperations = [
  listAllFeatures,
  createNewFeature,
  getOneFeature,
  updateOneFeature,
  deleteOneFeature,
  getEnrollment,
  enrollPerson,
];
