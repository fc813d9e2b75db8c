/** The server over HTTP, for operators: status, doctor, rejected requests, imports, backups. */

import { type Static, Type } from "@sinclair/typebox";
import { operatorRoute } from "../../accounts/api/routes.ts";
import type { Route } from "../../http/route.ts";
import { dateTime, int, list, named, nullable, object, string } from "../../http/schemas.ts";
import { exampleImport, ImportBody, importBody } from "../../import/api/imports.ts";
import type { ImportUploads } from "../../import/uploads.ts";
import { toApiTime } from "../../lib/time.ts";
import { Finding } from "../doctor/finding.ts";
import type { RequestLog } from "../request-log.ts";
import { historySampleSeconds, historySamplesMax, StatusSample } from "../status-history.ts";
import { Status } from "../status-schema.ts";
import { type BackupDeps, backupRoutes } from "./backups.ts";

export interface InstanceDeps extends BackupDeps {
  status: () => Promise<Status>;
  /** Samples of the last 24 hours, oldest first. */
  history: () => readonly StatusSample[];
  /** Runs the doctor in a separate process. */
  runChecks: () => Promise<Static<typeof DoctorBody>>;
  uploads: Pick<ImportUploads, "list">;
  requests: Pick<RequestLog, "recentRejections">;
  /** Resolves when the HTTP workers have reported their counts; absent without workers. */
  collectFigures?: () => Promise<void>;
}

const tag = "Instance";

const DoctorBody = named(
  "Doctor",
  object({ ok: Type.Boolean(), errors: int(), warnings: int(), findings: list(Finding) }),
);

const exampleStatus = {
  running: true,
  state: "ready",
  version: "0.2.0",
  url: "http://127.0.0.1:8000",
  started_at: "2026-03-04T16:00:01.007Z",
  uptime_seconds: 3_600,
  events_per_second: 12,
  journal: [],
  events_at: null,
  shared: null,
  workers: [],
  engine: { up: true, restarts: 0, rebuilding: null, trouble: null, properties: [] },
  disk: {
    metadata_bytes: 9_000_000,
    people_bytes: 26_000_000,
    events_bytes: 62_000_000,
    journal_bytes: 0,
    quarantine_bytes: 0,
    archive_bytes: 40_000_000,
    library_bytes: 75_000_000,
    backups_bytes: 90_000_000,
    other_bytes: 24_000,
  },
  stored: { events: 600_000, bytes_per_event: 228 },
  volume: { free_bytes: 90_000_000_000, total_bytes: 100_000_000_000, needed_bytes: 560_000_000 },
  roles: ["capture", "flags", "query"].map((role) => ({ role, ready: true, reason: null })),
  next_backup: { at: "2026-11-22T03:00:00Z", schedule: "0 3 * * *", time_zone: "UTC" },
  given_up: [],
  last_backup: null,
  last_scrub: null,
  warnings: [],
  spikes: [],
};

const RejectionsBody = named(
  "RefusedRequests",
  object({
    results: list(
      object({
        at: dateTime(),
        method: string(),
        path: string(),
        status: int(),
        reason: nullable(string()),
        client: string({ description: "IP address of the client." }),
      }),
    ),
  }),
);
const exampleRejections = {
  results: [
    {
      at: "2026-03-04T16:00:01.007000Z",
      method: "POST",
      path: "/capture/",
      status: 401,
      reason: "Project API key invalid.",
      client: "10.0.0.7",
    },
  ],
};

const HistoryBody = named("InstanceHistory", object({ results: list(StatusSample) }));
const exampleHistory = {
  results: [
    {
      at: "2026-03-04T16:00:01.007000Z",
      events_per_second: 12.5,
      lag_entries: 0,
      engine_up: true,
      disk_bytes: 302_024_000,
      last_backup_at: "2026-03-04T03:00:09.000000Z",
    },
  ],
};

export function instanceRoutes(deps: InstanceDeps): Route[] {
  return [
    operatorRoute(deps, "GET", "/status", {
      tag,
      summary: "Get server status",
      description: "Same as `flagkeep status --json`.",
      answers: { 200: { description: "The state.", schema: Status, example: exampleStatus } },
      handle: () => deps.status(),
    }),
    operatorRoute(deps, "GET", "/history", {
      tag,
      summary: "List figures of the last 24 hours",
      description: `One sample per ${historySampleSeconds / 60} minutes since the start of this process, oldest first; at most ${historySamplesMax}.`,
      answers: {
        200: { description: "The samples.", schema: HistoryBody, example: exampleHistory },
      },
      handle: () => ({ results: [...deps.history()] }),
    }),
    operatorRoute(deps, "GET", "/doctor", {
      tag,
      summary: "Run the doctor's checks",
      description: "Same as `flagkeep doctor --json`; changes nothing.",
      answers: {
        200: {
          description: "The findings.",
          schema: DoctorBody,
          example: {
            ok: true,
            errors: 0,
            warnings: 0,
            findings: [{ check: "disk", level: "ok", message: "40 GB are free.", hint: null }],
          },
        },
      },
      handle: async () => await deps.runChecks(),
    }),
    operatorRoute(deps, "GET", "/refusals", {
      tag,
      summary: "List rejected event requests",
      description: "The latest 20 since the start, newest first, to diagnose missing events.",
      answers: {
        200: { description: "The requests.", schema: RejectionsBody, example: exampleRejections },
      },
      async handle() {
        await deps.collectFigures?.();
        return {
          results: deps.requests
            .recentRejections()
            .map(({ at, reason = null, ...facts }) => ({ ...facts, reason, at: toApiTime(at) })),
        };
      },
    }),
    operatorRoute(deps, "GET", "/imports", {
      tag,
      summary: "List the imports of all projects",
      description: "Includes `flagkeep import` runs since the last start; newest first.",
      answers: {
        200: {
          description: "The imports.",
          schema: object({ results: list(ImportBody) }),
          example: { results: [exampleImport] },
        },
      },
      handle: () => ({ results: deps.uploads.list().map(importBody) }),
    }),
    ...backupRoutes(deps),
  ];
}
