/** The engine's side of queries: HTTP over the engine's socket, one DuckDB connection per query, few at a time. */

import { unlinkSync } from "node:fs";
import type { DuckDBConnection } from "@duckdb/node-api";
import { AppError } from "../errors.ts";
import type { EventDatabase } from "../events/database.ts";
import { isAboutPerson } from "../events/event-filters.ts";
import { type EventFilter, listEvents, positionOf } from "../events/list.ts";
import type { EventLoader } from "../events/loader.ts";
import { eventsText } from "../events/page.ts";
import type { PersonMirror } from "../events/person-mirror.ts";
import { computeTrends } from "../events/trends.ts";
import { addCohortMembers, countCohortMembers } from "../people/cohort-members.ts";
import { listGroupTypes } from "../people/groups.ts";
import { addHashKeyOverrides } from "../people/hash-key-overrides.ts";
import type { PeopleDb } from "../people/open.ts";
import { distinctIdsOf, personByUuid } from "../people/reader.ts";
import { analysisHandlers } from "./analysis.ts";
import { personTextsOf } from "./event-persons.ts";
import { engineSocketName, type LogLevel } from "./messages.ts";
import { fillCohortByFlag, findPersons, type RunQuery } from "./person-queries.ts";
import { nextPositionHeader, type Queries, refusedStatus } from "./query-types.ts";
import { computeReach } from "./reach.ts";

export interface QueryServices {
  database: EventDatabase;
  loader: EventLoader;
  people: PeopleDb;
  mirror: PersonMirror;
  queryTimeoutMs: number;
  log: (level: LogLevel, msg: string, fields?: Record<string, unknown>) => void;
  /** Called with what a query failed by. */
  onFailure: (error: unknown) => void;
}

/** Loading must always find a free thread: at most this many queries run, the others wait. */
const queriesAtOnce = 2;
/** Apart from the queries, which must not wait for minutes. */
const exportsAtOnce = 1;

/** As far as a timer reaches: 24 days. */
const longestMs = 2 ** 31 - 1;

/** Thrown when a query was stopped because it took too long. */
class QueryTimedOut extends Error {}

export type Handlers = {
  [Name in keyof Queries]: (request: Queries[Name]["request"]) => Promise<Queries[Name]["answer"]>;
};

/** What answers each query. */
export function queryHandlers(services: QueryServices): Handlers {
  const { people, mirror } = services;
  const slots = new Slots(queriesAtOnce);
  const run: RunQuery = (query) => slots.use(() => withConnection(services, query));
  const exportSlots = new Slots(exportsAtOnce);
  const unlimited = { ...services, queryTimeoutMs: longestMs };
  const runLong: RunQuery = (query) => exportSlots.use(() => withConnection(unlimited, query));
  const persons = { people, mirror, run };
  return {
    events: async (filter) => {
      if (filter.properties?.some(isAboutPerson)) await mirror.follow();
      const page = await run((connection) => listEvents(connection, withDistinctIds(people, filter)));
      const { text, count } = eventsText(page.events, {
        personTexts: personTextsOf(people, filter.projectId, page.events),
        groupTypeIndexes: new Map(
          listGroupTypes(people, filter.projectId).map(({ name, typeIndex }) => [name, typeIndex]),
        ),
      });
      return { text, next: count < page.events.length ? positionOf(page.events[count - 1]!) : page.next };
    },
    trends: async (request) => {
      await mirror.follow();
      return await run((connection) => computeTrends(connection, request));
    },
    reach: (request) => computeReach(persons, request),
    findPersons: (request) => findPersons(persons, request),
    fillCohortByFlag: (request) => fillCohortByFlag(persons, request),
    addCohortMembers: async ({ projectId, cohortId, distinctIds }) => {
      addCohortMembers(people, projectId, cohortId, { distinctIds });
      return countCohortMembers(people, cohortId);
    },
    addHashKeyOverrides: async ({ projectId, ...overrides }) =>
      addHashKeyOverrides(people, projectId, overrides),
    holdCheckpoints: async ({ ms, checkpointFirst }) => {
      const { loader } = services;
      loader.holdCheckpoints(ms);
      if (checkpointFirst) await withConnection(unlimited, (other) => loader.checkpointForCopy(other));
      return null;
    },
    ...analysisHandlers({ people, mirror, run, runLong }),
  };
}

/** Opens the engine's socket in the working directory, which is the data directory. */
export function serveQueries(services: QueryServices): void {
  const handlers = queryHandlers(services);
  Bun.serve({
    // A relative name: the path of a socket may not be longer than 108 bytes, a data directory's may.
    unix: engineSocketName,
    async fetch(request: Request) {
      const name = new URL(request.url).pathname.slice(1) as keyof Queries;
      const handler = handlers[name] as ((body: unknown) => Promise<unknown>) | undefined;
      if (handler === undefined) return new Response("unknown query", { status: 404 });
      try {
        return toResponse(name, await handler(await request.json()));
      } catch (error) {
        if (error instanceof QueryTimedOut) return new Response("query timed out", { status: 504 });
        if (error instanceof AppError) {
          return Response.json({ code: error.code, message: error.message }, { status: refusedStatus });
        }
        services.log("error", "a query failed", { query: name, error: String(error) });
        services.onFailure(error);
        return new Response(String(error), { status: 500 });
      }
    },
  });
  process.on("exit", () => {
    try {
      unlinkSync(engineSocketName);
    } catch {
      // Gone already.
    }
  });
}

/** Pages of events go out as the text they are. */
function toResponse(name: keyof Queries, answer: unknown): Response {
  if (name !== "events") return Response.json(answer ?? null);
  const { text, next } = answer as Queries["events"]["answer"];
  return new Response(text, {
    headers: next === undefined ? {} : { [nextPositionHeader]: JSON.stringify(next) },
  });
}

/** A person's events are the events of all its distinct ids. */
function withDistinctIds(people: PeopleDb, filter: EventFilter): EventFilter {
  if (filter.personUuid === undefined) return filter;
  const person = personByUuid(people, filter.projectId, filter.personUuid);
  const own = person === undefined ? [] : (distinctIdsOf(people, [person]).get(person.id) ?? []);
  const distinctIds =
    filter.distinctIds === undefined ? own : own.filter((id) => filter.distinctIds!.includes(id));
  return { ...filter, distinctIds };
}

async function withConnection<Result>(
  { database, queryTimeoutMs }: QueryServices,
  query: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await database.connect();
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    connection.interrupt();
  }, queryTimeoutMs);
  try {
    return await query(connection);
  } catch (error) {
    throw timedOut ? new QueryTimedOut() : error;
  } finally {
    clearTimeout(timer);
    connection.closeSync();
  }
}

/** Lets a few run at once and the others wait in order. */
class Slots {
  private readonly waiting: (() => void)[] = [];
  constructor(private free: number) {}

  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.free === 0) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.free -= 1;
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }
}
