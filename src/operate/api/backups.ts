/** Backups over HTTP, for operators. Restoring stays on the command line. */

import type { Static } from "@sinclair/typebox";
import { Cron } from "croner";
import { operatorRoute, type UserCall } from "../../accounts/api/routes.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { isOperator } from "../../accounts/users.ts";
import { type Destination, isIndexName } from "../../backup/destination.ts";
import { BackupNotFoundError, BackupRunningError, DestinationError } from "../../backup/errors.ts";
import { ListedBackup, listBackups } from "../../backup/list.ts";
import { HttpError, notFound } from "../../http/http-error.ts";
import { readUuid } from "../../http/params.ts";
import { whileAllowed } from "../../http/result-files.ts";
import { type Method, publicRoute, type Route, RouteResponse, type RouteSpec } from "../../http/route.ts";
import {
  ApiFailure,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  record,
  string,
  uuid,
} from "../../http/schemas.ts";
import { setNewest } from "../../lib/bounded-cache.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import { type Job, type JobKind, JobRunningError, type Jobs } from "../jobs.ts";

export interface BackupDeps {
  metadata: Metadata;
  jobs: Jobs;
  backups: {
    /** Opened per request: its folder or credentials may change. */
    destination: () => Destination;
    /** Deletes a backup, with the chunks that only it needs. @throws {BackupRunningError} */
    remove: (destination: Destination, name: string) => Promise<void>;
    /** Cron expression; empty for none. */
    schedule: string;
    createCommand: readonly string[];
    verifyCommand: (file: string) => readonly string[];
    restoreCommand: (file: string) => string;
  };
}

const tag = "Instance";
/** Lifetime of a download URL. */
const ticketMs = 60_000;
const ticketsMax = 100;

const JobBody = named(
  "BackupJob",
  object({
    id: uuid(),
    kind: enumeration(["create", "verify"]),
    name: nullable(string({ description: "Backup being verified." })),
    state: enumeration(["running", "done", "failed"]),
    started_at: dateTime(),
    finished_at: nullable(dateTime()),
    step: nullable(string()),
    done: int({ description: "Bytes processed of `total`; both 0 if unknown." }),
    total: int(),
    error: nullable(string()),
    result: nullable(
      record({ description: "Output of `flagkeep backup create --json` or `verify --json`." }),
    ),
  }),
);
export type BackupJob = Static<typeof JobBody>;
const BackupBody = named(
  "Backup",
  object({
    ...ListedBackup.properties,
    name: string({ description: "Name of the backup in the paths of this API." }),
    restore_command: string(),
  }),
);
const BackupsBody = named(
  "Backups",
  object({
    destination: string(),
    schedule: nullable(string({ description: "Cron expression of the setting `backup-schedule`." })),
    next_at: nullable(dateTime()),
    results: list(BackupBody),
    jobs: list(JobBody, { description: "Since the last start, the newest first." }),
  }),
);

export type Backups = Static<typeof BackupsBody>;

const exampleJob = {
  id: "0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e",
  kind: "create" as const,
  name: null,
  state: "running" as const,
  started_at: "2026-03-04T16:00:01.007000Z",
  finished_at: null,
  step: "Packing",
  done: 1_048_576,
  total: 41_943_040,
  error: null,
  result: null,
};
const exampleBackup = {
  file: "/var/lib/flagkeep/backups/flagkeep-2026-03-04T03-00-00.000Z.tar.zst",
  created_at: "2026-03-04T03:00:00.000Z",
  bytes: 41_943_040,
  verified: true,
  encrypted: false,
  incremental: false,
  problem: null,
  version: "0.2.0",
  events: 1_000_000,
  projects: [],
  name: "flagkeep-2026-03-04T03-00-00.000Z.tar.zst",
  restore_command:
    "flagkeep backup restore /var/lib/flagkeep/backups/flagkeep-2026-03-04T03-00-00.000Z.tar.zst --data-dir /var/lib/flagkeep --force",
};
const busy = {
  409: {
    description: "Another backup operation is running.",
    schema: ApiFailure,
    example: {
      type: "server_error",
      code: "job_running",
      detail: "Another backup operation is running. Wait until it has finished.",
      attr: null,
    },
  },
};

const unreachable = {
  503: {
    description: "The backup destination cannot be read or written; `detail` contains its message.",
    schema: ApiFailure,
    example: {
      type: "server_error",
      code: "destination_failed",
      detail:
        "Listing s3://acme/flagkeep failed (AccessDenied: Access Denied). Check the destination's address, credentials and permissions.",
      attr: null,
    },
  },
};

export function backupRoutes(deps: BackupDeps): Route[] {
  /** A route that uses the destination. */
  const destinationRoute = (
    method: Method,
    path: string,
    { handle, answers, ...spec }: RouteSpec<UserCall>,
  ) =>
    operatorRoute(deps, method, path, {
      ...spec,
      answers: { ...answers, ...unreachable },
      handle: async (call) => {
        try {
          return await handle(call);
        } catch (error) {
          throw toRejection(error);
        }
      },
    });
  const tickets = new Map<string, { name: string; until: number; isStillAllowed: () => boolean }>();
  const startJob = (kind: JobKind, name: string | null, command: readonly string[], now: Date) => {
    try {
      return new RouteResponse(202, jobBody(deps.jobs.start(kind, name, command, now)));
    } catch (error) {
      if (error instanceof JobRunningError)
        throw new HttpError(409, "server_error", error.code, error.message);
      throw error;
    }
  };
  const stillAllowed = (call: UserCall) => () =>
    call.isStillAllowed() && isOperator(deps.metadata.db, call.user.id);
  const named = async (call: UserCall) => {
    const destination = deps.backups.destination();
    const name = call.params.name ?? "";
    if (!(await destination.list()).includes(name))
      throw notFound(`Backup ${name} does not exist in ${destination.name}.`);
    return { destination, name };
  };
  return [
    destinationRoute("GET", "/backups", {
      tag,
      summary: "List backups and backup operations",
      description:
        "Backups of the configured destination, newest first; only the start and end of each are read.",
      answers: {
        200: {
          description: "The backups.",
          schema: BackupsBody,
          example: {
            destination: "/var/lib/flagkeep/backups",
            schedule: null,
            next_at: null,
            results: [exampleBackup],
            jobs: [exampleJob],
          },
        },
      },
      handle: async (): Promise<Backups> => {
        const { destination: open, schedule, restoreCommand } = deps.backups;
        const destination = open();
        const backups = await listBackups(destination);
        return {
          destination: destination.name,
          schedule: schedule || null,
          next_at: toApiTimeOrNull(schedule === "" ? null : new Cron(schedule, { paused: true }).nextRun()),
          results: backups.map((backup) => ({
            ...backup,
            name: backup.file.slice(backup.file.lastIndexOf("/") + 1),
            restore_command: restoreCommand(backup.file),
          })),
          jobs: deps.jobs.list().map(jobBody),
        };
      },
    }),
    operatorRoute(deps, "POST", "/backups", {
      tag,
      summary: "Create a backup",
      description: "Starts immediately; poll the job for its progress. One operation at a time.",
      answers: { 202: { description: "The job.", schema: JobBody, example: exampleJob }, ...busy },
      handle: (call) => startJob("create", null, deps.backups.createCommand, call.now),
    }),
    operatorRoute(deps, "GET", "/backups/jobs/:id", {
      tag,
      summary: "Get the progress of a backup operation",
      answers: { 200: { description: "The job.", schema: JobBody, example: exampleJob } },
      handle: (call) => {
        const job = deps.jobs.find(readUuid(call.params, "id"));
        if (job === undefined) throw notFound();
        return jobBody(job);
      },
    }),
    destinationRoute("POST", "/backups/:name/verify", {
      tag,
      summary: "Verify a backup",
      description: "Extracts it to a temporary folder and compares all checksums and counts.",
      answers: { 202: { description: "The job.", schema: JobBody, example: exampleJob }, ...busy },
      handle: async (call) => {
        const { destination, name } = await named(call);
        return startJob("verify", name, deps.backups.verifyCommand(`${destination.name}/${name}`), call.now);
      },
    }),
    destinationRoute("GET", "/backups/:name/download", {
      tag,
      summary: "Get a backup",
      description: "It contains credentials.",
      makesCredential: true,
      answers: { 200: { description: "The file." } },
      handle: async (call) => {
        const { destination, name } = await named(call);
        return await fileResponse(destination, name, stillAllowed(call));
      },
    }),
    destinationRoute("POST", "/backups/:name/ticket", {
      tag,
      summary: "Create a download link for a backup",
      description:
        "Valid once, for one minute, without a key. Becomes invalid with the key or session that created it.",
      makesCredential: true,
      answers: {
        201: {
          description: "The address.",
          schema: object({ url: string(), expires_at: dateTime() }),
          example: {
            url: "/api/instance/downloads/3kVbT0qYfZ1mXcN8sLw5uJhR2dPaE7gQ6oIiStUyWzB/",
            expires_at: "2026-03-04T16:01:01.007000Z",
          },
        },
      },
      handle: async (call) => {
        const { name } = await named(call);
        const ticket = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
        const until = call.now.getTime() + ticketMs;
        setNewest(tickets, ticket, { name, until, isStillAllowed: stillAllowed(call) }, ticketsMax);
        return new RouteResponse(201, {
          url: `/api/instance/downloads/${ticket}/`,
          expires_at: toApiTime(new Date(until)),
        });
      },
    }),
    publicRoute("GET", "/api/instance/downloads/:ticket", {
      summary: "Download a backup by its link",
      tag,
      answers: { 200: { description: "The file." } },
      handle: async (call) => {
        const ticket = call.params.ticket ?? "";
        const found = tickets.get(ticket);
        tickets.delete(ticket);
        if (found === undefined || found.until <= call.now.getTime() || !found.isStillAllowed())
          throw notFound();
        const { name, isStillAllowed } = found;
        const sent = fileResponse(deps.backups.destination(), name, isStillAllowed);
        return await sent.catch((error: unknown) => {
          throw toRejection(error);
        });
      },
    }),
    destinationRoute("DELETE", "/backups/:name", {
      tag,
      summary: "Delete a backup",
      requiresReauthentication: true,
      answers: { 204: { description: "Gone." }, ...busy },
      handle: async (call) => {
        const { destination, name } = await named(call);
        await deps.backups.remove(destination, name).catch((error: unknown) => {
          if (!(error instanceof BackupRunningError)) throw error;
          throw new HttpError(409, "server_error", "job_running", error.message);
        });
        return new RouteResponse(204);
      },
    }),
  ];
}

/** Streams a backup; reading stops when the client disconnects or loses access. */
async function fileResponse(
  destination: Destination,
  name: string,
  isStillAllowed: () => boolean,
): Promise<Response> {
  if (isIndexName(name)) {
    throw new HttpError(
      400,
      "validation_error",
      "incremental_backup",
      "An incremental backup is not a single file. Copy the destination, or use `flagkeep backup restore` there.",
    );
  }
  const source = await destination.open(name);
  const chunks = source.stream()[Symbol.asyncIterator]();
  let left = source.bytes;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      left -= value?.length ?? 0;
      // The runtime sends no Content-Length with a stream: only an aborted response shows that bytes are missing.
      if (done && left > 0) throw new Error(`${name} is truncated: ${left} bytes are missing.`);
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
  return new Response(whileAllowed(body, isStillAllowed), {
    headers: {
      "Content-Type": name.endsWith(".zst") ? "application/zstd" : "application/octet-stream",
      "Content-Length": String(source.bytes),
      "Content-Disposition": `attachment; filename="${name}"`,
      "Cache-Control": "no-store",
    },
  });
}

/** Destination errors are passed on: the operator configured the destination. */
function toRejection(error: unknown): unknown {
  if (error instanceof BackupNotFoundError) return notFound();
  if (!(error instanceof DestinationError)) return error;
  return new HttpError(503, "server_error", error.code, `${error.message} ${error.hint}`);
}

function jobBody(job: Job): BackupJob {
  return {
    id: job.id,
    kind: job.kind,
    name: job.name,
    state: job.state,
    started_at: toApiTime(job.startedAt),
    finished_at: toApiTimeOrNull(job.finishedAt),
    step: job.step,
    done: job.done,
    total: job.total,
    error: job.error,
    result: job.result as BackupJob["result"],
  };
}
