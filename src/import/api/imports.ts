/** Imports over HTTP: a file is sent, in parts where it is large, and loaded as `flagkeep import` loads it. */

import { type Static, Type } from "@sinclair/typebox";
import { checkAdmin } from "../../accounts/api/roles.ts";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { decompressed } from "../../http/decode/unwrap.ts";
import { HttpFailure, parseError } from "../../http/failure.ts";
import { readUuid } from "../../http/path.ts";
import { readBoolean } from "../../http/query.ts";
import { type Method, Reply, type Route, type RouteSpec } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  choice,
  instant,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  text,
  uuid,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { toWire } from "../../lib/wire-time.ts";
import { fieldRule } from "../map/fields.ts";
import { importFormats } from "../map/formats.ts";
import { zoneForm, zoneOf } from "../map/zone.ts";
import { isNullText, nullForm } from "../read/csv.ts";
import { rejectsMaxDefault } from "../reject-file.ts";
import { type ImportOptions, type ImportRun, importStates } from "../runs.ts";
import { ImportSummary } from "../summary.ts";
import {
  ImportInWrongState,
  type ImportUploads,
  importsMax,
  NoRoomForImport,
  runningMax,
  WrongOffset,
} from "../uploads.ts";

const tagName = "Imports";
const rulesMax = 50;
const ruleLengthMax = 1_000;
const rejectsMaxMax = 1_000_000;

const { reject_files: _, ...summaryFields } = ImportSummary.properties;
export const ImportBody = named(
  "Import",
  object({
    id: uuid(),
    project_id: int(),
    name: text({ description: "Of the file." }),
    origin: choice(["upload", "command_line"]),
    state: choice(importStates, {
      description: `\`uploading\` until it is started; \`waiting\` while ${runningMax} others run; \`interrupted\` when the server was stopped.`,
    }),
    format: nullable(choice(importFormats)),
    map: list(text()),
    null: list(text()),
    timezone: nullable(text()),
    link_identities: nullable(bool()),
    max_rejects: nullable(int()),
    dry_run: bool(),
    created_by: nullable(int(), { description: "Id of the user." }),
    created_at: instant(),
    started_at: nullable(instant()),
    finished_at: nullable(instant()),
    received_bytes: int({ description: "Of the file; the next part begins here." }),
    progress: object({
      records: int(),
      bytes: num({ description: "Of the file, as far as it is read." }),
      total_bytes: nullable(int()),
      records_per_second: int(),
      seconds_left: nullable(int()),
      rejected: int(),
    }),
    error: nullable(text({ description: "Why it failed." })),
    summary: nullable(Type.Object(summaryFields), { description: "As `flagkeep import --json` prints it." }),
  }),
);
const ImportsBody = named("Imports", object({ results: list(ImportBody) }));

export const exampleImport: Static<typeof ImportBody> = {
  ...{ id: "0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e", project_id: 1, name: "old.ndjson.gz", origin: "upload" },
  ...{
    state: "running",
    format: "auto",
    map: [],
    null: [],
    timezone: null,
    link_identities: true,
    max_rejects: 10_000,
    dry_run: false,
  },
  ...{ created_by: 1, created_at: "2026-03-04T16:00:01.007000Z", started_at: "2026-03-04T16:00:01.107000Z" },
  ...{ finished_at: null, received_bytes: 41_943_040 },
  progress: {
    ...{ records: 460_000, bytes: 19_293_798, total_bytes: 41_943_040 },
    ...{ records_per_second: 10_000, seconds_left: 53, rejected: 3 },
  },
  ...{ error: null, summary: null },
};

const refusals = {
  409: {
    description: "Not in the state that the import is in; or a part does not begin where the file ends.",
    schema: ApiFailure,
    example: {
      ...{ type: "invalid_request", code: "import_state", attr: null },
      detail: "The import is done: it does not run.",
    },
  },
  503: {
    description: "There is no room: on the disk, or for more imports.",
    schema: ApiFailure,
    example: {
      ...{ type: "server_error", code: "import_no_room", attr: null },
      detail: "There is not enough room on the disk for more of the file.",
    },
  },
};
const retryAfterSeconds = 60;

const OrderQuery = object({
  name: optional(text({ description: "Of the file." })),
  format: optional(
    choice(importFormats, { description: "What the file is; `auto` (default): its content tells." }),
  ),
  map: optional(text({ description: "As `--map` of `flagkeep import` takes it; repeat for more." })),
  null: optional(
    text({ description: "In tables, an unquoted cell that is no value, as `--null`; repeat for more." }),
  ),
  timezone: optional(text({ description: "The zone of times without one, as `--timezone`; default UTC." })),
  link_identities: optional(
    bool({ description: "Join the devices and users that the records name; default true." }),
  ),
  max_rejects: optional(int({ description: "Stop when more are rejected.", default: rejectsMaxDefault })),
  dry_run: optional(bool({ description: "Read and check everything, load nothing." })),
  start: optional(bool({ description: "False when parts of the file follow; default true." })),
});

export interface ImportUploadDeps {
  metadata: Metadata;
  uploads: ImportUploads;
}

export function importUploadRoutes(deps: ImportUploadDeps): Route[] {
  const { uploads } = deps;
  const one = { 200: { description: "The import.", schema: ImportBody, example: exampleImport } };
  /** Who may only read cannot load events of the past, nor see what was in a file. */
  const adminRoute = (method: Method, path: string, spec: RouteSpec<ProjectCall>) =>
    projectRoute(method, `/imports${path}`, method === "GET" ? "event:read" : "event:write", {
      ...spec,
      description: [spec.description, "Admins and owners only."].filter(Boolean).join(" "),
      // A part is read by it.
      takesLong: true,
      handle: async (call) => {
        checkAdmin(deps, { user: call.user, organization: { id: call.project.organizationId } });
        try {
          return await spec.handle(call);
        } catch (error) {
          throw refusalOf(error);
        }
      },
    });
  const runOf = (call: ProjectCall<unknown>) =>
    uploads.find(call.project.id, readUuid(call.params, "import_id"));
  return [
    projectRoute("GET", "/imports", "event:read", {
      summary: "List imports",
      description:
        "The newest first: of files that were sent, and of those that `flagkeep import` has loaded since the last start.",
      tag: tagName,
      answers: {
        200: { description: "The imports.", schema: ImportsBody, example: { results: [exampleImport] } },
      },
      handle: (call) => ({ results: uploads.list(call.project.id).map(importBody) }),
    }),
    adminRoute("POST", "", {
      summary: "Upload a file to import",
      description:
        "The body is the file, of any content type (of a form, its first file), with at most as many bytes as the setting " +
        "`body-limit`. Send a larger one in parts: the first, or nothing, with `start=false`, the others to `parts/`, then " +
        "`start/`. What a file may be, `flagkeep import --help` tells. Events are loaded in order through the historical lane, " +
        `none of them twice. Up to ${importsMax} imports are remembered.`,
      tag: tagName,
      query: OrderQuery,
      answers: {
        201: { description: "The import.", schema: ImportBody, example: exampleImport },
        ...refusals,
      },
      handle: async (call) => {
        const options = optionsIn(call.query);
        const isStarted = readBoolean(call.query, "start") ?? true;
        const { bytes, name } = await fileIn(call);
        if (isStarted && bytes.length === 0)
          throw new InvalidField("file", "required", "The body is empty: send the file, or start=false.");
        const order = { projectId: call.project.id, createdBy: call.user.id, options };
        const run = uploads.create({ ...order, name: call.query.get("name") || name || "upload" }, call.now);
        try {
          if (bytes.length > 0) await uploads.append(run, bytes, 0);
        } catch (error) {
          await uploads.remove(run);
          throw error;
        }
        if (isStarted) uploads.start(run);
        return new Reply(201, importBody(run));
      },
    }),
    projectRoute("GET", "/imports/:import_id", "event:read", {
      summary: "Get import progress",
      tag: tagName,
      answers: one,
      handle: (call) => importBody(runOf(call)),
    }),
    adminRoute("POST", "/:import_id/parts", {
      summary: "Upload the next part of a file",
      description:
        "The body is the part. `offset` says where it begins: at `received_bytes`, else 409 `wrong_offset`, which says where; so " +
        "a part that broke off is sent again.",
      tag: tagName,
      query: object({ offset: int({ description: "Bytes before this part.", minimum: 0 }) }),
      answers: { ...one, ...refusals },
      handle: async (call) => {
        const run = runOf(call);
        const written = call.query.get("offset") ?? "";
        if (!/^\d{1,15}$/.test(written))
          throw new InvalidField("offset", "invalid_input", "A number of bytes is required.");
        await uploads.append(run, (await fileIn(call)).bytes, Number(written));
        return importBody(run);
      },
    }),
    projectStart(),
    adminRoute("POST", "/:import_id/cancel", {
      summary: "Cancel an import",
      description: "What was loaded stays; `start/` goes on from there.",
      tag: tagName,
      answers: { ...one, ...refusals },
      handle: async (call) => {
        const run = runOf(call);
        await uploads.cancel(run);
        return importBody(run);
      },
    }),
    adminRoute("GET", "/:import_id/rejects", {
      summary: "Get the rejected records of an import",
      description: 'Lines of JSON: `{"line","reason","record"}`.',
      tag: tagName,
      answers: { 200: { description: "The lines; none is an empty body." } },
      handle: (call) => {
        const run = runOf(call);
        return new Response(uploads.rejects(run) as never, {
          headers: {
            "Content-Type": "application/x-ndjson",
            "Content-Disposition": `attachment; filename="${run.id}.rejected.ndjson"`,
            "Cache-Control": "no-store",
          },
        });
      },
    }),
    adminRoute("DELETE", "/:import_id", {
      summary: "Delete an import",
      description:
        "Its file and its rejected records are removed; one that runs is cancelled first. What was loaded stays.",
      tag: tagName,
      answers: { 204: { description: "Gone." }, 409: refusals[409] },
      handle: async (call) => {
        await uploads.remove(runOf(call));
        return new Reply(204);
      },
    }),
  ];

  function projectStart(): Route {
    return projectRoute("POST", "/imports/:import_id/start", "event:write", {
      summary: "Start or resume an import",
      description:
        "When all of its file is there; after a dry run, a failure, a cancellation or a restart of the server it goes on behind " +
        "what it has loaded. Admins and owners only.",
      tag: tagName,
      body: object({
        dry_run: optional(bool()),
        max_rejects: optional(int({ minimum: 0, maximum: rejectsMaxMax })),
      }),
      isPartial: true,
      bodyExample: { max_rejects: 50_000 },
      answers: { ...one, ...refusals },
      handle: (call) => {
        checkAdmin(deps, { user: call.user, organization: { id: call.project.organizationId } });
        try {
          const run = runOf(call);
          uploads.start(run, { isDryRun: call.body.dry_run, maxRejects: call.body.max_rejects });
          return importBody(run);
        } catch (error) {
          throw refusalOf(error);
        }
      },
    });
  }
}

/** The wire form of an import. */
export function importBody(run: ImportRun): Static<typeof ImportBody> {
  const { options, figures } = run;
  const time = (iso: string) => toWire(new Date(iso));
  return {
    ...{ id: run.id, project_id: run.projectId, name: run.name, origin: run.origin, state: run.state },
    ...{
      format: options?.format ?? null,
      map: options?.map ?? [],
      null: options?.nulls ?? [],
      timezone: options?.timezone ?? null,
    },
    ...{ link_identities: options?.isLinking ?? null, max_rejects: options?.maxRejects ?? null },
    ...{ dry_run: options?.isDryRun ?? false, created_by: run.createdBy, created_at: time(run.createdAt) },
    started_at: run.startedAt === null ? null : time(run.startedAt),
    finished_at: run.finishedAt === null ? null : time(run.finishedAt),
    received_bytes: run.receivedBytes,
    progress: {
      ...{ records: figures.records, bytes: figures.bytes, total_bytes: figures.totalBytes },
      ...{ records_per_second: figures.recordsPerSecond, seconds_left: figures.secondsLeft },
      rejected: figures.rejected,
    },
    ...{ error: run.error, summary: run.summary as Static<typeof ImportBody>["summary"] },
  };
}

/** @throws {InvalidField} */
function optionsIn(query: URLSearchParams): ImportOptions {
  const format = importFormats.find((known) => known === (query.get("format") || "auto"));
  if (format === undefined)
    throw new InvalidField("format", "invalid_choice", `"${query.get("format")}" is not a valid choice.`);
  const map = query.getAll("map").filter((rule) => rule !== "");
  if (map.length > rulesMax) throw new InvalidField("map", "max_length", `At most ${rulesMax} rules.`);
  const wrong = map.find((rule) => rule.length > ruleLengthMax || fieldRule(rule) === undefined);
  if (wrong !== undefined)
    throw new InvalidField(
      "map",
      "invalid_input",
      "It must be old=new, or a field of the event and its sources.",
    );
  const nulls = query.getAll("null").filter((text) => text !== "");
  if (nulls.length > rulesMax) throw new InvalidField("null", "max_length", `At most ${rulesMax} texts.`);
  const wrongNull = nulls.find((text) => !isNullText(text));
  if (wrongNull !== undefined)
    throw new InvalidField(
      "null",
      "invalid_input",
      `"${wrongNull}" is invalid. Expected the text of a table cell that is no value, such as NULL: ${nullForm}.`,
    );
  const timezone = query.get("timezone") || undefined;
  if (timezone !== undefined && zoneOf(timezone) === undefined)
    throw new InvalidField("timezone", "invalid_input", `"${timezone}" is invalid. Expected ${zoneForm}.`);
  const maxRejects = query.get("max_rejects") || String(rejectsMaxDefault);
  if (!/^\d{1,9}$/.test(maxRejects) || Number(maxRejects) > rejectsMaxMax)
    throw new InvalidField(
      "max_rejects",
      "invalid_input",
      `A whole number up to ${rejectsMaxMax} is required.`,
    );
  return {
    ...{
      format: format as ImportOptions["format"],
      map,
      nulls,
      ...(timezone === undefined ? {} : { timezone }),
      maxRejects: Number(maxRejects),
    },
    isLinking: readBoolean(query, "link_identities") ?? true,
    isDryRun: readBoolean(query, "dry_run") ?? false,
  };
}

/** The file of a request: its body, or the first file of a form. */
async function fileIn(call: ProjectCall<unknown>): Promise<{ bytes: Uint8Array; name: string | undefined }> {
  const bytes = await sentBytes(call);
  const type = call.request.headers.get("content-type") ?? "";
  if (!/^\s*multipart\/form-data/i.test(type)) return { bytes, name: undefined };
  try {
    const form = await new Response(bytes as never, { headers: { "content-type": type } }).formData();
    for (const value of form.values()) {
      if (typeof value === "string") continue;
      return { bytes: new Uint8Array(await (value as Blob).arrayBuffer()), name: (value as File).name };
    }
  } catch {
    throw parseError("the form could not be read");
  }
  throw new InvalidField("file", "required", "The form holds no file.");
}

/** The body without its coding; gzip and Zstandard stay, which an import takes off by itself however large the file is then. */
async function sentBytes(call: ProjectCall<unknown>): Promise<Uint8Array> {
  const { bytes, contentEncoding, limitBytes } = await call.wrapped("events");
  const isTakenOff = /^\s*(?:br|deflate)\s*$/i.test(contentEncoding ?? "");
  return isTakenOff ? await decompressed(bytes, contentEncoding ?? null, limitBytes) : bytes;
}

function refusalOf(error: unknown): unknown {
  if (error instanceof ImportInWrongState || error instanceof WrongOffset)
    return new HttpFailure(409, "invalid_request", error.code, error.message);
  if (error instanceof NoRoomForImport)
    return new HttpFailure(503, "server_error", error.code, error.message, null, {
      "Retry-After": String(retryAfterSeconds),
    });
  return error;
}
