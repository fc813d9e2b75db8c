/** Annotations of charts (contract: management-api 6.10). */

import { type Static, Type } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../accounts/api/user-schemas.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { annotationScopes } from "../accounts/schema.ts";
import { userFinder } from "../accounts/users.ts";
import {
  type Annotation,
  type AnnotationFields,
  contentLengthMax,
  createAnnotation,
  findAnnotation,
  listAnnotations,
  updateAnnotation,
} from "../dashboards/annotations.ts";
import { findDashboard, findInsight } from "../dashboards/store.ts";
import { readChoice, readIdFilter, readInstant } from "../http/params.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  named,
  nullable,
  object,
  optional,
  pageOf,
  string,
} from "../http/schemas.ts";
import { toApiTime } from "../lib/time.ts";
import {
  type CommandArgument,
  getAuthor,
  listOperation,
  operation,
  type ProjectContext,
} from "./operation.ts";

type Context = ProjectContext<{ metadata: Metadata }>;

const tag = "Annotations";
const scope = enumeration(annotationScopes, {
  description: "Charts that show it: all of the project, of one dashboard, or one insight.",
});

const AnnotationBody = named(
  "Annotation",
  object({
    id: int(),
    content: string(),
    date_marker: dateTime({ description: "Annotated time." }),
    creation_type: enumeration(["USR"]),
    scope,
    dashboard_id: nullable(int()),
    dashboard_name: nullable(string({ blank: true })),
    dashboard_item: nullable(int({ description: "Id of the insight." })),
    insight_short_id: nullable(string()),
    insight_name: nullable(string({ blank: true })),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    updated_at: dateTime(),
    deleted: bool(),
  }),
);
type AnnotationRecord = Static<typeof AnnotationBody>;

const example: AnnotationRecord = {
  id: 4,
  content: "New checkout",
  date_marker: "2026-03-04T12:00:00.000000Z",
  creation_type: "USR",
  scope: "project",
  dashboard_id: null,
  dashboard_name: null,
  dashboard_item: null,
  insight_short_id: null,
  insight_name: null,
  created_by: exampleUser,
  created_at: "2026-03-04T16:00:01.007000Z",
  updated_at: "2026-03-04T16:00:01.007000Z",
  deleted: false,
};

function body({ stores: { metadata } }: Context, annotation: Annotation): AnnotationRecord {
  const { db } = metadata;
  const creator = userFinder(db)(annotation.createdById);
  const dashboard =
    annotation.dashboardId === null
      ? undefined
      : findDashboard(db, annotation.projectId, annotation.dashboardId);
  const insight =
    annotation.insightId === null
      ? undefined
      : findInsight(db, annotation.projectId, String(annotation.insightId));
  return {
    id: annotation.id,
    content: annotation.content,
    date_marker: toApiTime(annotation.dateMarker),
    creation_type: "USR",
    scope: annotation.scope,
    dashboard_id: annotation.dashboardId,
    dashboard_name: dashboard?.name ?? null,
    dashboard_item: annotation.insightId,
    insight_short_id: insight?.shortId ?? null,
    insight_name: insight?.name ?? null,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(annotation.createdAt),
    updated_at: toApiTime(annotation.updatedAt),
    deleted: annotation.deleted,
  };
}

const content = string({ description: "The note.", max: contentLengthMax });
const dateMarker = dateTime({ description: "Annotated time; default: now." });
const fields = {
  scope: optional(scope),
  dashboard_id: optional(nullable(int({ description: "Dashboard of the scope `dashboard`." }))),
  dashboard_item: optional(nullable(int({ description: "Insight of the scope `dashboard_item`." }))),
};
const options = {
  date_marker: { flags: "--at <time>", description: "annotated time; default: now" },
  dashboard_id: { flags: "--dashboard <id>", description: "dashboard of the scope dashboard", parse: Number },
  dashboard_item: {
    flags: "--insight <id>",
    description: "insight of the scope dashboard_item",
    parse: Number,
  },
};

interface Sent {
  content?: string;
  date_marker?: string | null;
  scope?: Annotation["scope"];
  dashboard_id?: number | null;
  dashboard_item?: number | null;
  deleted?: boolean;
}

/** Null and absent members are unchanged, except for the two ids. */
function optionalFields(sent: Sent): Partial<AnnotationFields> {
  return {
    ...(sent.content === undefined ? {} : { content: sent.content }),
    ...(sent.date_marker ? { dateMarker: new Date(sent.date_marker) } : {}),
    ...(sent.scope === undefined ? {} : { scope: sent.scope }),
    ...(sent.dashboard_id === undefined ? {} : { dashboardId: sent.dashboard_id }),
    ...(sent.dashboard_item === undefined ? {} : { insightId: sent.dashboard_item }),
    ...(sent.deleted === undefined ? {} : { deleted: sent.deleted }),
  };
}

const listAllAnnotations = listOperation({
  id: "annotations.list",
  on: "project",
  scope: "annotation:read",
  tag,
  summary: "List annotations",
  description: "The latest time first, without deleted ones.",
  http: { method: "GET", path: "/annotations", answer: "One page of annotations." },
  cli: {
    name: "annotations list",
    examples: ["annotations list --json"],
    options: {
      dashboard_id: { flags: "--dashboard <id>", description: "only annotations of this dashboard" },
      dashboard_item: { flags: "--insight <id>", description: "only annotations of this insight" },
    },
    table: {
      headings: ["id", "time", "content", "scope", "created by"],
      row: (annotation: AnnotationRecord) => [
        String(annotation.id),
        annotation.date_marker,
        annotation.content,
        annotation.scope,
        annotation.created_by?.email ?? "",
      ],
    },
  },
  input: object({
    search: optional(string({ description: "Part of the content." })),
    scope: optional(scope),
    dashboard_id: optional(int({ description: "Only annotations that this dashboard shows." })),
    dashboard_item: optional(int({ description: "Only annotations that this insight shows." })),
    date_from: optional(dateTime({ description: "Start time, inclusive." })),
    date_to: optional(dateTime({ description: "End time, exclusive." })),
  }),
  output: pageOf("AnnotationPage", AnnotationBody),
  example,
  readQuery: (query) => ({
    search: query.get("search") || undefined,
    scope: readChoice(query, "scope", annotationScopes),
    dashboardId: readIdFilter(query, "dashboard_id"),
    insightId: readIdFilter(query, "dashboard_item"),
    from: toDate(readInstant(query, "date_from")),
    to: toDate(readInstant(query, "date_to")),
  }),
  run: (context: Context, { limit, offset, ...filter }) => {
    const { db } = context.stores.metadata;
    const { annotations, count } = listAnnotations(db, context.project.id, filter, { limit, offset });
    return { count, results: annotations.map((annotation) => body(context, annotation)) };
  },
});

const toDate = (micros: number | undefined) => (micros === undefined ? undefined : new Date(micros / 1_000));

const createNewAnnotation = operation({
  id: "annotations.create",
  on: "project",
  scope: "annotation:write",
  tag,
  summary: "Create an annotation",
  description: "Charts show it at its time.",
  http: { method: "POST", path: "/annotations", status: 201, answer: "The annotation." },
  cli: {
    name: "annotations create",
    description: "Create an annotation, which charts show at its time.",
    examples: ['annotations create "New checkout" --at 2026-03-04T12:00:00.000000Z'],
    arguments: [{ name: "content", description: "the note", member: "content" }],
    hasCreator: true,
    options,
    done: (annotation: AnnotationRecord) =>
      `Annotation ${annotation.id} created at ${annotation.date_marker}.`,
  },
  input: object({ content, date_marker: optional(nullable(dateMarker)), ...fields }),
  inputExample: { content: "New checkout", date_marker: "2026-03-04T12:00:00.000000Z" },
  output: AnnotationBody,
  example,
  run: (context: Context, input) => {
    const { stores, project, actor, now } = context;
    const standard = { dateMarker: now, scope: "project" as const, dashboardId: null, insightId: null };
    const target = { projectId: project.id, by: getAuthor(actor), now };
    const created = createAnnotation(stores.metadata, target, {
      ...standard,
      ...optionalFields(input as Sent),
    } as AnnotationFields);
    return body(context, created);
  },
});

const getAnnotation = operation({
  id: "annotations.get",
  on: "project",
  scope: "annotation:read",
  tag,
  summary: "Get an annotation",
  http: { method: "GET", path: "/annotations/:id", answer: "The annotation." },
  input: object({ id: int() }),
  output: AnnotationBody,
  example,
  run: (context: Context, { id }) =>
    body(context, findAnnotation(context.stores.metadata.db, context.project.id, id)),
});

const idArgument: CommandArgument = {
  name: "id",
  description: "annotation id",
  member: "id",
  lookup: {
    in: () => listAllAnnotations,
    matches: (annotation: AnnotationRecord, argument) => String(annotation.id) === argument,
    value: (annotation: AnnotationRecord) => annotation.id,
    missing: (argument) => `Annotation ${argument} does not exist.`,
  },
};

const ofCall = ({ project, actor, now }: Context, id: number) => ({
  projectId: project.id,
  id,
  by: getAuthor(actor),
  now,
});

const updateOneAnnotation = operation({
  id: "annotations.update",
  on: "project",
  scope: "annotation:write",
  tag,
  summary: "Update, delete or restore an annotation",
  description: "`deleted: true` deletes it, `deleted: false` restores it.",
  http: { method: "PATCH", path: "/annotations/:id", answer: "The annotation." },
  cli: {
    name: "annotations update",
    description: "Update, delete or restore an annotation.",
    examples: ['annotations update 4 --content "New checkout, 50%"'],
    arguments: [idArgument],
    options,
    done: (annotation: AnnotationRecord) => `Annotation ${annotation.id} updated.`,
  },
  input: object({
    id: int(),
    content: optional(content),
    date_marker: optional(nullable(dateMarker)),
    ...fields,
    deleted: optional(bool({ description: "whether it is deleted" })),
  }),
  inputExample: { content: "New checkout, 50%" },
  output: AnnotationBody,
  example,
  run: (context: Context, { id, ...sent }) =>
    body(
      context,
      updateAnnotation(context.stores.metadata, ofCall(context, id), optionalFields(sent as Sent)),
    ),
});

const deleteOneAnnotation = operation({
  id: "annotations.delete",
  on: "project",
  scope: "annotation:write",
  tag,
  summary: "Delete an annotation",
  http: { method: "DELETE", path: "/annotations/:id" },
  cli: {
    name: "annotations delete",
    examples: ["annotations delete 4"],
    arguments: [idArgument],
    result: {
      schema: object({ ...AnnotationBody.properties, deleted: Type.Literal(true) }),
      build: ({ found }: { found: { id: AnnotationRecord } }) => ({ ...found.id, deleted: true }),
    },
    done: (annotation: AnnotationRecord) => `Annotation ${annotation.id} deleted.`,
  },
  input: object({ id: int() }),
  run: (context: Context, { id }) => {
    updateAnnotation(context.stores.metadata, ofCall(context, id), { deleted: true });
  },
});

/** In the order of the documentation. */
export const annotationOperations = [
  listAllAnnotations,
  createNewAnnotation,
  getAnnotation,
  updateOneAnnotation,
  deleteOneAnnotation,
];
