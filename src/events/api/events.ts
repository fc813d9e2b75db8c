/** Reads events (contract: sdk-compat 4.10; the filters `order` and `historical` and the cursor are ours). */

import type { TSchema } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import { unavailable } from "../../http/error-mapping.ts";
import { notFound } from "../../http/http-error.ts";
import { readPage } from "../../http/pagination.ts";
import { readBoolean, readInstant, readPropertyFilters } from "../../http/params.ts";
import type { Route } from "../../http/route.ts";
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
  record,
  string,
  uuid,
} from "../../http/schemas.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import { canonicalUuid } from "../../lib/ids.ts";
import {
  type ComputedMember,
  computedMembers,
  type EventColumnKind,
  type EventColumnName,
  eventColumns,
  listedMembers,
} from "../columns.ts";
import { QueryRejectedError } from "../event-filters.ts";
import { type EventFilter, type EventOrder, type EventPosition, eventOrders } from "../list.ts";
import type { EventQueries } from "./query-port.ts";

const limitDefault = 100;
const limitMax = 10_000;
const offsetMax = 100_000;

const computed: Record<ComputedMember, { schema: TSchema; example: unknown }> = {
  id: { schema: uuid({ description: computedMembers.id }), example: eventColumns.uuid.example },
  person: { schema: nullable(record(), { description: computedMembers.person }), example: null },
  elements: { schema: list(record(), { description: computedMembers.elements }), example: [] },
};

const members = listedMembers.map((name) =>
  name in computed
    ? { name, ...computed[name as ComputedMember] }
    : {
        name,
        schema: getSchema(name as EventColumnName),
        example: eventColumns[name as EventColumnName].example,
      },
);

function getSchema(name: EventColumnName): TSchema {
  const { kind, about, isNullable, forNull } = eventColumns[name];
  const annotation = about === undefined ? {} : { description: about };
  if (isNullable && forNull === undefined) return nullable(schemaOfKind(kind, {}), annotation);
  return kind === "text" ? string({ ...annotation, blank: forNull === "" }) : schemaOfKind(kind, annotation);
}

function schemaOfKind(kind: EventColumnKind, annotation: { description?: string }): TSchema {
  switch (kind) {
    case "integer":
    case "bigint":
      return int(annotation);
    case "boolean":
      return bool(annotation);
    case "uuid":
      return uuid(annotation);
    case "instant":
      return dateTime(annotation);
    case "json":
      return record(annotation);
    case "text":
      return string(annotation);
  }
}

const Event = named("Event", object(Object.fromEntries(members.map(({ name, schema }) => [name, schema]))));

const EventPage = named(
  "EventPage",
  object({ next: nullable(string(), { description: "URL of the next page." }), results: list(Event) }),
);

const exampleEvent = Object.fromEntries(members.map(({ name, example }) => [name, example]));

const Query = object({
  event: optional(string({ description: "Only events with this name." })),
  distinct_id: optional(string({ description: "Only events of this distinct id." })),
  person_id: optional(uuid({ description: "Only events of this person with any of its distinct ids." })),
  uuid: optional(uuid({ description: "Only the event with this uuid." })),
  after: optional(dateTime({ description: "Only events later than this." })),
  before: optional(dateTime({ description: "Only events earlier than this." })),
  historical: optional(bool({ description: "Only historical or only realtime events." })),
  order: optional(
    enumeration(eventOrders, {
      description: "`-timestamp` (newest first), or by `seq`, the order of arrival.",
      default: "-timestamp",
    }),
  ),
  limit: optional(int({ description: "Page size.", default: limitDefault, minimum: 1, maximum: limitMax })),
  cursor: optional(string({ description: "Cursor from `next` of the previous page." })),
  offset: optional(int({ description: "Events to skip; `next` is faster.", maximum: offsetMax })),
  properties: optional(
    string({
      description:
        "JSON list of `{key, value, operator, type}`, joined by AND; `type` is `event` (default) or `person`.",
    }),
  ),
});

export interface EventsDeps {
  engine: EventQueries;
}

export function eventRoutes({ engine }: EventsDeps): Route[] {
  return [
    projectRoute("GET", "/events", ["event:read", "query:read"], {
      summary: "List events",
      description:
        "Events are readable about a second after acknowledgment. Default: all events, without a time range.",
      tag: "Events",
      query: Query,
      answers: {
        200: {
          description: "One page of events.",
          schema: EventPage,
          example: { next: null, results: [exampleEvent] },
        },
        ...unavailable,
      },
      async handle({ project, query, url }) {
        const page = await engine.stream("events", readFilter(project.id, query)).catch(rejection);
        const next = page.meta === null ? null : nextAddress(url, page.meta);
        return toJsonString(between(`{"next":${JSON.stringify(next)},"results":`, page.body, "}"));
      },
    }),
    projectRoute("GET", "/events/:id", ["event:read", "query:read"], {
      summary: "Get an event",
      description: "By its uuid.",
      tag: "Events",
      answers: { 200: { description: "The event.", schema: Event, example: exampleEvent }, ...unavailable },
      async handle({ project, params }) {
        const uuid = canonicalUuid(params.id ?? "");
        if (uuid === undefined) throw notFound();
        const found = await engine.stream("events", { projectId: project.id, uuid, order: "seq", limit: 1 });
        const text = await new Response(found.body).text();
        if (text === "[]") throw notFound();
        return toJsonString(text.slice(1, -1));
      },
    }),
  ];
}

/** The engine serializes events; the JSON is passed through. */
function toJsonString(text: string | ReadableStream<Uint8Array>): Response {
  return new Response(text, { headers: { "Content-Type": "application/json" } });
}

function between(
  before: string,
  body: ReadableStream<Uint8Array>,
  after: string,
): ReadableStream<Uint8Array> {
  const frame = new TransformStream<Uint8Array, Uint8Array>({
    start: (controller) => controller.enqueue(Buffer.from(before)),
    flush: (controller) => controller.enqueue(Buffer.from(after)),
  });
  return body.pipeThrough(frame);
}

/** @throws {InvalidFieldError} on the first invalid parameter */
function readFilter(projectId: number, query: URLSearchParams): EventFilter {
  const distinctId = query.get("distinct_id");
  // As for flags and persons, empty filters are ignored.
  return {
    projectId,
    event: query.get("event") || undefined,
    distinctIds: distinctId ? [distinctId] : undefined,
    personUuid: readUuid(query, "person_id"),
    uuid: readUuid(query, "uuid"),
    afterMicros: readInstant(query, "after"),
    beforeMicros: readInstant(query, "before"),
    historical: readBoolean(query, "historical"),
    properties: readPropertyFilters(query, "event"),
    order: readOrder(query.get("order")),
    limit: readLimit(query.get("limit")),
    from: readCursor(query.get("cursor")),
    offset: readOffset(query),
  };
}

/** The store only rejects property filters; everything else is validated before. */
function rejection(error: unknown): never {
  if (error instanceof QueryRejectedError && error.code !== "query_busy")
    throw new InvalidFieldError("properties", "invalid_input", error.message);
  throw error;
}

function readUuid(query: URLSearchParams, name: string): string | undefined {
  const option = query.get(name);
  if (!option) return undefined;
  const uuid = canonicalUuid(option);
  if (uuid === undefined) throw new InvalidFieldError(name, "invalid_input", "Must be a valid UUID.");
  return uuid;
}

function readOrder(option: string | null): EventOrder {
  if (!option || option === "desc") return "-timestamp";
  if (option === "asc") return "timestamp";
  const order = eventOrders.find((candidate) => candidate === option);
  if (order === undefined)
    throw new InvalidFieldError("order", "invalid_choice", `"${option}" is not a valid choice.`);
  return order;
}

/** As in all lists, an invalid limit becomes the default, and a large one the maximum. */
function readLimit(option: string | null): number {
  const limit = option !== null && /^\d{1,9}$/.test(option) ? Number(option) : 0;
  return limit < 1 ? limitDefault : Math.min(limit, limitMax);
}

/** As in all lists, an invalid offset is ignored; a large one is rejected, because clamping would repeat events. */
function readOffset(query: URLSearchParams): number {
  const { offset } = readPage(query);
  if (offset <= offsetMax) return offset;
  throw new InvalidFieldError(
    "offset",
    "max_value",
    `Ensure this value is less than or equal to ${offsetMax}.`,
  );
}

function readCursor(option: string | null): EventPosition | undefined {
  if (!option) return undefined;
  const match = /^(-?\d{1,18})\.([01])\.(\d{1,16})$/.exec(option);
  if (match === null) throw new InvalidFieldError("cursor", "invalid_input", "Invalid cursor for this list.");
  return { timestampMicros: Number(match[1]), historical: match[2] === "1", seq: Number(match[3]) };
}

function nextAddress(url: string, { timestampMicros, historical, seq }: EventPosition): string {
  const next = new URL(url);
  // The cursor points after the skipped events.
  next.searchParams.delete("offset");
  next.searchParams.set("cursor", `${timestampMicros}.${historical ? 1 : 0}.${seq}`);
  return next.href;
}
