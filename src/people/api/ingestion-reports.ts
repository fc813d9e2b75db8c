/** What ingestion tells about a project: warnings, usage, spikes (contract: README). */

import { projectRoute } from "../../accounts/api/routes.ts";
import { readPage } from "../../http/pagination.ts";
import type { Route } from "../../http/route.ts";
import {
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  num,
  object,
  optional,
  text,
  withPage,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import { microsToWire } from "../../lib/wire-time.ts";
import type { PeopleDb } from "../open.ts";
import { listSpikes } from "../spikes/spike-store.ts";
import { listUsage } from "../usage.ts";
import { type CountedWarning, listWarnings } from "../warnings.ts";

const tagName = "Ingestion";

const WarningPage = named(
  "IngestionWarnings",
  object({
    results: list(
      object({
        type: text(),
        count: int({ description: "How often it happened." }),
        last_seen: instant(),
        warnings: list(object({ type: text(), timestamp: instant(), count: int(), details: dictionary() }), {
          description: "The latest, told apart by hour and by what they are about.",
        }),
      }),
    ),
  }),
);

const counts = {
  identified: int({ description: "Realtime events with a person profile." }),
  anonymous: int({ description: "Realtime events without." }),
  historical: int(),
  billable: int({ description: "Identified and anonymous; never historical." }),
  duplicates: int({ description: "Left out because their uuid was known." }),
  dropped: int({ description: "Refused by a rule." }),
};
const UsageBody = named(
  "Usage",
  object({ results: list(object({ date: text(), ...counts })), totals: object(counts) }),
);

const SpikePage = named(
  "Spikes",
  object({
    results: list(
      object({
        id: int(),
        started_at: instant(),
        ended_at: nullable(instant()),
        peak_per_minute: num(),
        usual_per_minute: num(),
        events: list(object({ event: text({ blank: true }), count: int() })),
        distinct_ids: list(object({ distinct_id: text({ blank: true }), count: int() })),
      }),
    ),
  }),
);

/** Rows that are added up; each stands for one type, subject and hour. */
const warningsMax = 10_000;

const noCounts = { identified: 0, anonymous: 0, historical: 0, billable: 0, duplicates: 0, dropped: 0 };

export function ingestionReportRoutes({ people }: { people: PeopleDb }): Route[] {
  return [
    projectRoute("GET", "/ingestion_warnings", ["ingestion_warning:read", "project:read"], {
      summary: "List ingestion warnings",
      description: "The last 30 days, by type; the type seen last comes first.",
      tag: tagName,
      query: object({ type: optional(text({ description: "Only this type." })) }),
      answers: {
        200: { description: "The warnings.", schema: WarningPage, example: { results: [] } },
      },
      handle: (call) => {
        const type = call.query.get("type");
        const warnings = listWarnings(people, call.project.id, {
          limit: warningsMax,
          types: type ? [type] : undefined,
        });
        return { results: byType(warnings) };
      },
    }),
    projectRoute("GET", "/usage", "project:read", {
      summary: "Count accepted events per day",
      description: "Days are UTC. Historical events are never billable.",
      tag: tagName,
      query: object({
        date_from: optional(text({ description: "First day, YYYY-MM-DD." })),
        date_to: optional(text({ description: "Last day, YYYY-MM-DD." })),
      }),
      answers: {
        200: { description: "The counts.", schema: UsageBody, example: { results: [], totals: noCounts } },
      },
      handle: (call) =>
        listUsage(people, call.project.id, {
          dateFrom: readDay(call.query, "date_from"),
          dateTo: readDay(call.query, "date_to"),
        }),
    }),
    projectRoute("GET", "/spikes", "project:read", {
      summary: "List event spikes",
      description: "Newest first. A spike changes nothing about the events. Historical events never count.",
      tag: tagName,
      query: withPage(object({})),
      answers: { 200: { description: "The spikes.", schema: SpikePage, example: { results: [] } } },
      handle: (call) => ({
        results: listSpikes(people, call.project.id, readPage(call.query)).map((spike) => ({
          id: spike.id,
          started_at: microsToWire(spike.startedMicros),
          ended_at: spike.endedMicros === null ? null : microsToWire(spike.endedMicros),
          peak_per_minute: spike.peakPerMinute,
          usual_per_minute: spike.usualPerMinute,
          events: spike.events,
          distinct_ids: spike.distinctIds.map(({ distinctId, count }) => ({
            distinct_id: distinctId,
            count,
          })),
        })),
      }),
    }),
  ];
}

function byType(warnings: readonly CountedWarning[]) {
  const types = new Map<string, CountedWarning[]>();
  for (const warning of warnings) types.set(warning.type, [...(types.get(warning.type) ?? []), warning]);
  return [...types].map(([type, found]) => ({
    type,
    count: found.reduce((sum, warning) => sum + warning.count, 0),
    last_seen: microsToWire(Math.max(...found.map((warning) => warning.lastMicros))),
    warnings: found.map((warning) => ({
      type,
      timestamp: microsToWire(warning.lastMicros),
      count: warning.count,
      details: warning.details as JsonObject,
    })),
  }));
}

/** @throws {InvalidField} not a day. */
function readDay(query: URLSearchParams, name: string): string | undefined {
  const given = query.get(name);
  if (given === null || given === "") return undefined;
  if (/^\d{4}-\d{2}-\d{2}$/.test(given) && !Number.isNaN(Date.parse(given))) return given;
  throw new InvalidField(name, "invalid_input", "Date has wrong format. Use YYYY-MM-DD.");
}
