/** Reading events back (contract: sdk-compat 4.10; the filters `order` and `historical` and the cursor are ours). */

import type { TSchema } from "@sinclair/typebox";
import { projectRoute } from "../../accounts/api/routes.ts";
import { unavailable } from "../../http/answers.ts";
import { notFound } from "../../http/failure.ts";
import { readPage } from "../../http/pagination.ts";
import { readBoolean, readInstant, readPropertyFilters } from "../../http/query.ts";
import type { Route } from "../../http/route.ts";
import {
  bool,
  choice,
  dictionary,
  instant,
  int,
  list,
  named,
  nullable,
  object,
  optional,
  text,
  uuid,
} from "../../http/shapes.ts";
import { InvalidField } from "../../lib/errors.ts";
import { canonicalUuid } from "../../lib/uuid.ts";
import {
  type ComputedMember,
  computedMembers,
  type EventColumnKind,
  type EventColumnName,
  eventColumns,
  listedMembers,
} from "../columns.ts";
import { type EventFilter, type EventOrder, type EventPosition, eventOrders } from "../list.ts";
import { type EventQueries, QueryRefused } from "../port.ts";

const limitDefault = 100;
const limitMax = 10_000;
const offsetMax = 100_000;

const computed: Record<ComputedMember, { schema: TSchema; example: unknown }> = {
  id: { schema: uuid({ description: computedMembers.id }), example: eventColumns.uuid.example },
  person: { schema: nullable(dictionary(), { description: computedMembers.person }), example: null },
  elements: { schema: list(dictionary(), { description: computedMembers.elements }), example: [] },
};

const members = listedMembers.map((name) =>
  name in computed
    ? { name, ...computed[name as ComputedMember] }
    : {
        name,
        schema: schemaOf(name as EventColumnName),
        example: eventColumns[name as EventColumnName].example,
      },
);

function schemaOf(name: EventColumnName): TSchema {
  const { kind, about, isNullable, forNull } = eventColumns[name];
  const words = about === undefined ? {} : { description: about };
  if (isNullable && forNull === undefined) return nullable(schemaOfKind(kind, {}), words);
  return kind === "text" ? text({ ...words, blank: forNull === "" }) : schemaOfKind(kind, words);
}

function schemaOfKind(kind: EventColumnKind, words: { description?: string }): TSchema {
  switch (kind) {
    case "integer":
    case "bigint":
      return int(words);
    case "boolean":
      return bool(words);
    case "uuid":
      return uuid(words);
    case "instant":
      return instant(words);
    case "json":
      return dictionary(words);
    case "text":
      return text(words);
  }
}

const Event = named("Event", object(Object.fromEntries(members.map(({ name, schema }) => [name, schema]))));

const EventPage = named(
  "EventPage",
  object({ next: nullable(text(), { description: "Address of the next page." }), results: list(Event) }),
);

const exampleEvent = Object.fromEntries(members.map(({ name, example }) => [name, example]));

const Query = object({
  event: optional(text({ description: "Only events with this name." })),
  distinct_id: optional(text({ description: "Only events of this distinct id." })),
  person_id: optional(uuid({ description: "Only events of this person, under all its distinct ids." })),
  uuid: optional(uuid({ description: "Only the event with this uuid." })),
  after: optional(instant({ description: "Only events later than this." })),
  before: optional(instant({ description: "Only events earlier than this." })),
  historical: optional(bool({ description: "Only events of the historical lane, or only others." })),
  order: optional(
    choice(eventOrders, {
      description: "`-timestamp` (newest first), or by `seq`, the order of arrival.",
      default: "-timestamp",
    }),
  ),
  limit: optional(int({ description: "Page size.", default: limitDefault, minimum: 1, maximum: limitMax })),
  cursor: optional(text({ description: "Where the page before ended; taken from its `next`." })),
  offset: optional(int({ description: "Events to skip; `next` is faster.", maximum: offsetMax })),
  properties: optional(
    text({
      description:
        "JSON list of `{key, value, operator, type}`, joined by AND; `type` is `event` (default) or `person`.",
    }),
  ),
});

/** What the routes need. */
export interface EventsDependencies {
  engine: EventQueries;
}

export function eventRoutes({ engine }: EventsDependencies): Route[] {
  return [
    projectRoute("GET", "/events", ["event:read", "query:read"], {
      summary: "List events",
      description:
        "Events are readable about a second after they were acknowledged. Without `after` and `before` all of them are listed.",
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
        const page = await engine.stream("events", readFilter(project.id, query)).catch(refusal);
        const next = page.meta === null ? null : nextAddress(url, page.meta);
        return jsonText(between(`{"next":${JSON.stringify(next)},"results":`, page.body, "}"));
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
        return jsonText(text.slice(1, -1));
      },
    }),
  ];
}

/** The engine writes events as text, which goes out as it is. */
function jsonText(text: string | ReadableStream<Uint8Array>): Response {
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

/** @throws {InvalidField} for the first parameter that makes no sense. */
function readFilter(projectId: number, query: URLSearchParams): EventFilter {
  const distinctId = query.get("distinct_id");
  // As with flags and persons, a filter that is empty is none.
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

/** What the store cannot answer is about the property filters; the rest is checked before. */
function refusal(error: unknown): never {
  if (error instanceof QueryRefused && error.code !== "query_busy")
    throw new InvalidField("properties", "invalid_input", error.message);
  throw error;
}

function readUuid(query: URLSearchParams, name: string): string | undefined {
  const given = query.get(name);
  if (!given) return undefined;
  const uuid = canonicalUuid(given);
  if (uuid === undefined) throw new InvalidField(name, "invalid_input", "Must be a valid UUID.");
  return uuid;
}

function readOrder(given: string | null): EventOrder {
  if (!given || given === "desc") return "-timestamp";
  if (given === "asc") return "timestamp";
  const order = eventOrders.find((candidate) => candidate === given);
  if (order === undefined)
    throw new InvalidField("order", "invalid_choice", `"${given}" is not a valid choice.`);
  return order;
}

/** As in every list a limit without sense falls back to the default; one above the maximum is cut to it. */
function readLimit(given: string | null): number {
  const limit = given !== null && /^\d{1,9}$/.test(given) ? Number(given) : 0;
  return limit < 1 ? limitDefault : Math.min(limit, limitMax);
}

/** As in every list one without sense is none; a large one is refused rather than cut, which would repeat events. */
function readOffset(query: URLSearchParams): number {
  const { offset } = readPage(query);
  if (offset <= offsetMax) return offset;
  throw new InvalidField("offset", "max_value", `Ensure this value is less than or equal to ${offsetMax}.`);
}

function readCursor(given: string | null): EventPosition | undefined {
  if (!given) return undefined;
  const match = /^(-?\d{1,18})\.([01])\.(\d{1,16})$/.exec(given);
  if (match === null) throw new InvalidField("cursor", "invalid_input", "It is not a cursor of this list.");
  return { timestampMicros: Number(match[1]), historical: match[2] === "1", seq: Number(match[3]) };
}

function nextAddress(url: string, { timestampMicros, historical, seq }: EventPosition): string {
  const next = new URL(url);
  // The cursor stands behind the events that were skipped.
  next.searchParams.delete("offset");
  next.searchParams.set("cursor", `${timestampMicros}.${historical ? 1 : 0}.${seq}`);
  return next.href;
}
