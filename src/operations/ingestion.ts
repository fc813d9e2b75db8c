/** Ingestion of a project: warnings, usage, spikes (contract: README). */

import type { Static } from "@sinclair/typebox";
import { readPage } from "../http/pagination.ts";
import {
  dateTime,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  record,
  string,
  withPage,
} from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { microsToApiTime } from "../lib/time.ts";
import type { IngestionReader } from "../persons/ingestion-reader.ts";
import type { CountedWarning } from "../persons/warnings.ts";
import { operation, type ProjectContext } from "./operation.ts";

type Context = ProjectContext<{ ingestion: IngestionReader }>;

const tag = "Ingestion";

export const WarningPage = named(
  "IngestionWarnings",
  object({
    results: list(
      object({
        type: string(),
        count: int({ description: "Number of occurrences." }),
        last_seen: dateTime(),
        warnings: list(
          object({
            type: string(),
            subject: string({ blank: true, description: "Usually a distinct id." }),
            first_at: dateTime(),
            timestamp: dateTime({ description: "Time of the last occurrence." }),
            count: int(),
            details: record(),
          }),
          { description: "The latest warnings, grouped by hour and subject." },
        ),
      }),
    ),
  }),
);

const counts = {
  identified: int({ description: "Realtime events with a person profile." }),
  anonymous: int({ description: "Realtime events without a person profile." }),
  historical: int(),
  billable: int({ description: "Identified and anonymous; never historical." }),
  duplicates: int({ description: "Events discarded as duplicates." }),
  dropped: int({ description: "Events rejected by a rule." }),
};
export const UsageBody = named(
  "Usage",
  object({ results: list(object({ date: string(), ...counts })), totals: object(counts) }),
);

const SpikePage = named(
  "Spikes",
  object({
    results: list(
      object({
        id: int(),
        started_at: dateTime(),
        ended_at: nullable(dateTime()),
        peak_per_minute: num(),
        usual_per_minute: num(),
        events: list(object({ event: string({ blank: true }), count: int() })),
        distinct_ids: list(object({ distinct_id: string({ blank: true }), count: int() })),
      }),
    ),
  }),
);

/** Maximum rows to aggregate; each stands for one type, subject and hour. */
const warningsMax = 10_000;

const noCounts = { identified: 0, anonymous: 0, historical: 0, billable: 0, duplicates: 0, dropped: 0 };

export const listAllWarnings = operation({
  id: "ingestion_warnings.list",
  on: "project",
  scope: ["ingestion_warning:read", "project:read"],
  tag,
  summary: "List ingestion warnings",
  description: "The last 30 days by type, most recent type first.",
  http: { method: "GET", path: "/ingestion_warnings", answer: "The warnings." },
  mcp: { name: "list_ingestion_warnings" },
  input: object({ type: optional(string({ description: "Only this type." })) }),
  output: WarningPage,
  example: { results: [] },
  run: async ({ stores, project }: Context, { type }) => {
    const types = type ? [type] : undefined;
    return { results: byType(await stores.ingestion.warnings(project.id, { limit: warningsMax, types })) };
  },
  readQuery: (query) => ({ type: query.get("type") ?? undefined }),
});

export const countUsage = operation({
  id: "usage.count",
  on: "project",
  scope: "project:read",
  tag,
  summary: "Count accepted events per day",
  description: "Days are UTC. Historical events are never billable.",
  http: { method: "GET", path: "/usage", answer: "The counts." },
  input: object({
    date_from: optional(string({ description: "First day, YYYY-MM-DD." })),
    date_to: optional(string({ description: "Last day, YYYY-MM-DD." })),
  }),
  output: UsageBody,
  example: { results: [], totals: noCounts },
  readQuery: (query) => ({ dateFrom: readDay(query, "date_from"), dateTo: readDay(query, "date_to") }),
  run: ({ stores, project }: Context, days) => stores.ingestion.usage(project.id, days),
});

const listAllSpikes = operation({
  id: "spikes.list",
  on: "project",
  scope: "project:read",
  tag,
  summary: "List event spikes",
  description: "Newest first. Spikes do not affect events. Historical events are not counted.",
  http: { method: "GET", path: "/spikes", answer: "The spikes." },
  input: withPage(object({})),
  output: SpikePage,
  example: { results: [] },
  readQuery: (query) => ({ page: readPage(query) }),
  run: async ({ stores, project }: Context, { page }): Promise<Static<typeof SpikePage>> => ({
    results: (await stores.ingestion.spikes(project.id, page)).map((spike) => ({
      id: spike.id,
      started_at: microsToApiTime(spike.startedMicros),
      ended_at: spike.endedMicros === null ? null : microsToApiTime(spike.endedMicros),
      peak_per_minute: spike.peakPerMinute,
      usual_per_minute: spike.baselinePerMinute,
      events: spike.events,
      distinct_ids: spike.distinctIds.map(({ distinctId, count }) => ({ distinct_id: distinctId, count })),
    })),
  }),
});

function byType(warnings: readonly CountedWarning[]) {
  const types = new Map<string, CountedWarning[]>();
  for (const warning of warnings) types.set(warning.type, [...(types.get(warning.type) ?? []), warning]);
  return [...types].map(([type, found]) => ({
    type,
    count: found.reduce((sum, warning) => sum + warning.count, 0),
    last_seen: microsToApiTime(Math.max(...found.map((warning) => warning.lastMicros))),
    warnings: found.map((warning) => ({
      type,
      subject: warning.subject,
      first_at: microsToApiTime(warning.firstMicros),
      timestamp: microsToApiTime(warning.lastMicros),
      count: warning.count,
      details: warning.details as JsonObject,
    })),
  }));
}

/** @throws {InvalidFieldError} not a date */
function readDay(query: URLSearchParams, name: string): string | undefined {
  const option = query.get(name);
  if (option === null || option === "") return undefined;
  if (/^\d{4}-\d{2}-\d{2}$/.test(option) && !Number.isNaN(Date.parse(option))) return option;
  throw new InvalidFieldError(name, "invalid_input", "Date has wrong format. Use YYYY-MM-DD.");
}

/** In the order of the documentation. */
export const ingestionOperations = [listAllWarnings, countUsage, listAllSpikes];
