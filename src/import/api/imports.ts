/** Imports over HTTP: a file is uploaded, in parts if it is large, and loaded like by `flagkeep import`. */

import { type Static, Type } from "@sinclair/typebox";
import { checkAdmin } from "../../accounts/api/permissions.ts";
import { type ProjectCall, projectRoute } from "../../accounts/api/routes.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { decompressed } from "../../http/decode/decode-body.ts";
import { HttpError, parseError } from "../../http/http-error.ts";
import { readBoolean, readUuid } from "../../http/params.ts";
import { type Method, type Route, RouteResponse, type RouteSpec } from "../../http/route.ts";
import {
  ApiFailure,
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  string,
  uuid,
} from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { toApiTime } from "../../lib/time.ts";
import { type ImportOptions, type ImportRun, importStates } from "../import-status.ts";
import { fieldRule } from "../map/fields.ts";
import { importFormats } from "../map/formats.ts";
import { getZone, zoneForm } from "../map/zone.ts";
import { isNullMarker, nullForm } from "../read/csv.ts";
import { rejectsMaxDefault } from "../reject-file.ts";
import { ImportSummary } from "../summary.ts";
import {
  ImportCapacityError,
  ImportStateError,
  type ImportUploads,
  importsMax,
  runningMax,
  UploadOffsetError,
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
    name: string({ description: "Name of the file." }),
    origin: enumeration(["upload", "command_line"]),
    state: enumeration(importStates, {
      description: `\`uploading\` before the start; \`waiting\` while ${runningMax} others run; \`interrupted\` after a server stop.`,
    }),
    format: nullable(enumeration(importFormats)),
    map: list(string()),
    null: list(string()),
    timezone: nullable(string()),
    link_identities: nullable(bool()),
    max_rejects: nullable(int()),
    dry_run: bool(),
    created_by: nullable(int(), { description: "Id of the user." }),
    created_at: dateTime(),
    started_at: nullable(dateTime()),
    finished_at: nullable(dateTime()),
    received_bytes: int({ description: "Received bytes of the file; offset of the next part." }),
    progress: object({
      records: int(),
      bytes: num({ description: "Read bytes of the file." }),
      total_bytes: nullable(int()),
      records_per_second: int(),
      seconds_left: nullable(int()),
      rejected: int(),
    }),
    error: nullable(string({ description: "Error of a failed import." })),
    summary: nullable(Type.Object(summaryFields), { description: "Same as `flagkeep import --json`." }),
  }),
);
export const ImportsBody = named("Imports", object({ results: list(ImportBody) }));

export const exampleImport: Static<typeof ImportBody> = {
  id: "0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e",
  project_id: 1,
  name: "old.ndjson.gz",
  origin: "upload",
  state: "running",
  format: "auto",
  map: [],
  null: [],
  timezone: null,
  link_identities: true,
  max_rejects: 10_000,
  dry_run: false,
  created_by: 1,
  created_at: "2026-03-04T16:00:01.007000Z",
  started_at: "2026-03-04T16:00:01.107000Z",
  finished_at: null,
  received_bytes: 41_943_040,
  progress: {
    records: 460_000,
    bytes: 19_293_798,
    total_bytes: 41_943_040,
    records_per_second: 10_000,
    seconds_left: 53,
    rejected: 3,
  },
  error: null,
  summary: null,
};

const rejections = {
  409: {
    description: "Not allowed in the state of the import, or the part has a wrong offset.",
    schema: ApiFailure,
    example: {
      type: "invalid_request",
      code: "import_state",
      attr: null,
      detail: "The import is done: it is not running.",
    },
  },
  503: {
    description: "Not enough disk space, or too many imports.",
    schema: ApiFailure,
    example: {
      type: "server_error",
      code: "import_no_room",
      attr: null,
      detail: "Not enough disk space for the rest of the file.",
    },
  },
};
const retryAfterSeconds = 60;

const OrderQuery = object({
  name: optional(string({ description: "Name of the file." })),
  format: optional(
    enumeration(importFormats, { description: "File format; default: `auto`, detected from the content." }),
  ),
  map: optional(string({ description: "Same as `flagkeep import --map`; repeatable." })),
  null: optional(
    string({ description: "Unquoted table cell to read as NULL, same as `--null`; repeatable." }),
  ),
  timezone: optional(
    string({ description: "Time zone of times without one, same as `--timezone`; default: UTC." }),
  ),
  link_identities: optional(bool({ description: "Link devices to users; default: true." })),
  max_rejects: optional(
    int({
      description: "Maximum number of rejected records before the import stops.",
      default: rejectsMaxDefault,
    }),
  ),
  dry_run: optional(bool({ description: "Read and validate everything, load nothing." })),
  start: optional(bool({ description: "False if parts of the file follow; default: true." })),
});

export interface ImportUploadDeps {
  metadata: Metadata;
  uploads: ImportUploads;
}

export function importUploadRoutes(deps: ImportUploadDeps): Route[] {
  const { uploads } = deps;
  const responses = { 200: { description: "The import.", schema: ImportBody, example: exampleImport } };
  /** Read-only users can neither load past events nor see the contents of a file. */
  const adminRoute = (method: Method, path: string, spec: RouteSpec<ProjectCall>) =>
    projectRoute(method, `/imports${path}`, method === "GET" ? "event:read" : "event:write", {
      ...spec,
      description: [spec.description, "Admins and owners only."].filter(Boolean).join(" "),
      // It reads an uploaded part.
      isLongRunning: true,
      handle: async (call) => {
        checkAdmin(deps, { user: call.user, organization: { id: call.project.organizationId } });
        try {
          return await spec.handle(call);
        } catch (error) {
          throw toRejection(error);
        }
      },
    });
  const getRun = (call: ProjectCall<unknown>) =>
    uploads.find(call.project.id, readUuid(call.params, "import_id"));
  return [
    adminRoute("POST", "", {
      summary: "Upload a file to import",
      description:
        "The body is the file, of any content type (the first file of a form), up to the setting " +
        "`body-limit`. Send larger files in parts: the first part, or nothing, with `start=false`, the others to `parts/`, then " +
        "`start/`. `flagkeep import --help` describes the formats. Events are loaded in order through the historical lane, " +
        `without duplicates. At most ${importsMax} imports are kept.`,
      tag: tagName,
      query: OrderQuery,
      answers: {
        201: { description: "The import.", schema: ImportBody, example: exampleImport },
        ...rejections,
      },
      handle: async (call) => {
        const options = optionsIn(call.query);
        const isStarted = readBoolean(call.query, "start") ?? true;
        const { bytes, name } = await fileIn(call);
        if (isStarted && bytes.length === 0)
          throw new InvalidFieldError(
            "file",
            "required",
            "The body is empty: send the file, or start=false.",
          );
        const order = { projectId: call.project.id, createdBy: call.user.id, options };
        const run = uploads.create({ ...order, name: call.query.get("name") || name || "upload" }, call.now);
        try {
          if (bytes.length > 0) await uploads.append(run, bytes, 0);
        } catch (error) {
          await uploads.remove(run);
          throw error;
        }
        if (isStarted) uploads.start(run);
        return new RouteResponse(201, importBody(run));
      },
    }),
    adminRoute("POST", "/:import_id/parts", {
      summary: "Upload the next part of a file",
      description:
        "The body is the part. `offset` must equal `received_bytes`, else 409 `wrong_offset` with the expected value; " +
        "resend an interrupted part.",
      tag: tagName,
      query: object({ offset: int({ description: "Bytes before this part.", minimum: 0 }) }),
      answers: { ...responses, ...rejections },
      handle: async (call) => {
        const run = getRun(call);
        const written = call.query.get("offset") ?? "";
        if (!/^\d{1,15}$/.test(written))
          throw new InvalidFieldError("offset", "invalid_input", "Expected a number of bytes.");
        await uploads.append(run, (await fileIn(call)).bytes, Number(written));
        return importBody(run);
      },
    }),
    projectStart(),
    adminRoute("POST", "/:import_id/cancel", {
      summary: "Cancel an import",
      description: "Loaded events are kept; `start/` resumes.",
      tag: tagName,
      answers: { ...responses, ...rejections },
      handle: async (call) => {
        const run = getRun(call);
        await uploads.cancel(run);
        return importBody(run);
      },
    }),
    adminRoute("GET", "/:import_id/rejects", {
      summary: "Get the rejected records of an import",
      description: 'Lines of JSON: `{"line","reason","record"}`.',
      tag: tagName,
      answers: { 200: { description: "The rejected records; empty without any." } },
      handle: (call) => {
        const run = getRun(call);
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
        "Deletes its file and rejected records and cancels a running import. Loaded events are kept.",
      tag: tagName,
      answers: { 204: { description: "Gone." }, 409: rejections[409] },
      handle: async (call) => {
        await uploads.remove(getRun(call));
        return new RouteResponse(204);
      },
    }),
  ];

  function projectStart(): Route {
    return projectRoute("POST", "/imports/:import_id/start", "event:write", {
      summary: "Start or resume an import",
      description:
        "Requires the complete file. After a dry run, failure, cancellation or server restart it resumes after " +
        "the loaded records. Admins and owners only.",
      tag: tagName,
      body: object({
        dry_run: optional(bool()),
        max_rejects: optional(int({ minimum: 0, maximum: rejectsMaxMax })),
      }),
      isPartial: true,
      bodyExample: { max_rejects: 50_000 },
      answers: { ...responses, ...rejections },
      handle: (call) => {
        checkAdmin(deps, { user: call.user, organization: { id: call.project.organizationId } });
        try {
          const run = getRun(call);
          uploads.start(run, { isDryRun: call.body.dry_run, maxRejects: call.body.max_rejects });
          return importBody(run);
        } catch (error) {
          throw toRejection(error);
        }
      },
    });
  }
}

/** The API representation of an import. */
export function importBody(run: ImportRun): Static<typeof ImportBody> {
  const { options, figures } = run;
  const time = (iso: string) => toApiTime(new Date(iso));
  return {
    id: run.id,
    project_id: run.projectId,
    name: run.name,
    origin: run.origin,
    state: run.state,
    format: options?.format ?? null,
    map: options?.map ?? [],
    null: options?.nulls ?? [],
    timezone: options?.timezone ?? null,
    link_identities: options?.isLinking ?? null,
    max_rejects: options?.maxRejects ?? null,
    dry_run: options?.isDryRun ?? false,
    created_by: run.createdBy,
    created_at: time(run.createdAt),
    started_at: run.startedAt === null ? null : time(run.startedAt),
    finished_at: run.finishedAt === null ? null : time(run.finishedAt),
    received_bytes: run.receivedBytes,
    progress: {
      records: figures.records,
      bytes: figures.bytes,
      total_bytes: figures.totalBytes,
      records_per_second: figures.recordsPerSecond,
      seconds_left: figures.secondsLeft,
      rejected: figures.rejected,
    },
    error: run.error,
    summary: run.summary as Static<typeof ImportBody>["summary"],
  };
}

/** @throws {InvalidFieldError} */
function optionsIn(query: URLSearchParams): ImportOptions {
  const format = importFormats.find((known) => known === (query.get("format") || "auto"));
  if (format === undefined)
    throw new InvalidFieldError(
      "format",
      "invalid_choice",
      `"${query.get("format")}" is not a valid choice.`,
    );
  const map = query.getAll("map").filter((rule) => rule !== "");
  if (map.length > rulesMax) throw new InvalidFieldError("map", "max_length", `At most ${rulesMax} rules.`);
  const wrong = map.find((rule) => rule.length > ruleLengthMax || fieldRule(rule) === undefined);
  if (wrong !== undefined)
    throw new InvalidFieldError(
      "map",
      "invalid_input",
      "Expected OLD=NEW or FIELD=SOURCES, for example event=name|'$pageview'.",
    );
  const nulls = query.getAll("null").filter((text) => text !== "");
  if (nulls.length > rulesMax)
    throw new InvalidFieldError("null", "max_length", `At most ${rulesMax} values.`);
  const wrongNull = nulls.find((text) => !isNullMarker(text));
  if (wrongNull !== undefined)
    throw new InvalidFieldError(
      "null",
      "invalid_input",
      `"${wrongNull}" is invalid. Expected the content of an empty table cell, for example NULL: ${nullForm}.`,
    );
  const timezone = query.get("timezone") || undefined;
  if (timezone !== undefined && getZone(timezone) === undefined)
    throw new InvalidFieldError(
      "timezone",
      "invalid_input",
      `"${timezone}" is invalid. Expected ${zoneForm}.`,
    );
  const maxRejects = query.get("max_rejects") || String(rejectsMaxDefault);
  if (!/^\d{1,9}$/.test(maxRejects) || Number(maxRejects) > rejectsMaxMax)
    throw new InvalidFieldError(
      "max_rejects",
      "invalid_input",
      `Expected an integer up to ${rejectsMaxMax}.`,
    );
  return {
    format: format as ImportOptions["format"],
    map,
    nulls,
    ...(timezone === undefined ? {} : { timezone }),
    maxRejects: Number(maxRejects),
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
  throw new InvalidFieldError("file", "required", "The form contains no file.");
}

/**
 * The body without its Content-Encoding; gzip and Zstandard stay, which an import decompresses itself, without a size
 * limit.
 */
async function sentBytes(call: ProjectCall<unknown>): Promise<Uint8Array> {
  const { bytes, contentEncoding, limitBytes } = await call.wrapped("events");
  const isRemoved = /^\s*(?:br|deflate)\s*$/i.test(contentEncoding ?? "");
  return isRemoved ? await decompressed(bytes, contentEncoding ?? null, limitBytes) : bytes;
}

function toRejection(error: unknown): unknown {
  if (error instanceof ImportStateError || error instanceof UploadOffsetError)
    return new HttpError(409, "invalid_request", error.code, error.message);
  if (error instanceof ImportCapacityError)
    return new HttpError(503, "server_error", error.code, error.message, null, {
      "Retry-After": String(retryAfterSeconds),
    });
  return error;
}
