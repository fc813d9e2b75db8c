/** What the engine answers: each question by its subject, few at a time, and none project before all others. */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { EventDatabase } from "../events/database.ts";
import { isAboutPerson } from "../events/event-filters.ts";
import { countFlagCalls } from "../events/flag-calls.ts";
import { InsightCache } from "../events/insight-cache.ts";
import { computeInsight } from "../events/insights.ts";
import { type EventFilter, listEvents, positionOf } from "../events/list.ts";
import type { EventLoader } from "../events/loader.ts";
import { removeOldEvents } from "../events/old-events.ts";
import { eventsText } from "../events/page.ts";
import type { PersonMirror } from "../events/person-mirror.ts";
import type { PropertyPlace } from "../events/property-sql.ts";
import { callerSignal } from "../lib/caller.ts";
import { AppError } from "../lib/errors.ts";
import { Semaphore, SemaphoreFull } from "../lib/semaphore.ts";
import { addCohortMembers, countCohortMembers } from "../people/cohort-members.ts";
import { listGroupTypes } from "../people/groups.ts";
import { addHashKeyOverrides } from "../people/hash-key-overrides.ts";
import type { PeopleDb } from "../people/open.ts";
import { distinctIdsOf, personByUuid } from "../people/reader.ts";
import { RpcText } from "../rpc/server.ts";
import { analysisHandlers } from "./analysis.ts";
import { personTextsOf } from "./event-persons.ts";
import { fillCohortByFlag, findPersons, type RunQuery } from "./person-queries.ts";
import type { Queries } from "./query-types.ts";
import { computeReach } from "./reach.ts";
import { QueryTimedOut, type RunningQueries } from "./running-queries.ts";

export interface QueryServices {
  database: EventDatabase;
  loader: EventLoader;
  people: PeopleDb;
  mirror: PersonMirror;
  queries: RunningQueries;
  queryTimeoutMs: number;
  /** Told which properties of events a question reads; see `promotion.ts`. */
  onProperties?: (names: Iterable<string>) => void;
  resultBytesMax: number;
  /** Whether statements of a project have to run alone. */
  isSuspect: (projectId: number) => boolean;
  /** Told when somebody's statement begins and ends. */
  onStatement: (projectId: number, change: 1 | -1) => void;
}

/** Too many questions wait already. */
export class QueryBusy extends AppError {
  readonly code = "query_busy";
  override readonly hint = "Try again in a few seconds.";
  constructor() {
    super("Too many queries are waiting.");
  }
}

/** Questions of the API that run at once, in all and of one project. */
const ownLimits = { total: 3, perKey: 2, waiting: 256 };
/** Statements of operators. */
const statementLimits = { total: 3, perKey: 2, waiting: 64 };
/** Answers to statements that are made or not read yet: each may be as large as `query-result-limit`. */
const answerLimits = { total: 8, perKey: 2, waiting: 64 };
/** Pages of events that are made or not read yet. */
const pageLimits = { total: 16, perKey: 4, waiting: 256 };
/** Apart from the queries, which must not wait for minutes. */
const exportLimits = { total: 1, perKey: 1, waiting: 64 };

export type Handlers = {
  [Name in Exclude<keyof Queries, "slowQueries">]: (
    request: Queries[Name]["request"],
  ) => Promise<Queries[Name]["answer"] | RpcText>;
};

/** What answers each question. */
export function queryHandlers(services: QueryServices): Handlers {
  const { people, mirror, queries, loader } = services;
  const own = new Semaphore(ownLimits);
  const statements = new Semaphore(statementLimits);
  const exports = new Semaphore(exportLimits);
  const pages = new Semaphore(pageLimits);
  const answers = new Semaphore(answerLimits);
  const insights = new InsightCache();
  const endsAt = () => performance.now() + services.queryTimeoutMs;

  const runFor = (projectId: number): RunQuery => {
    const end = endsAt();
    return async (query) => {
      const leave = await enter(own, projectId, { endsAt: end });
      return await queries.run(query, { signal: callerSignal(), endsAt: end }).finally(leave);
    };
  };
  const runStatement = async (
    projectId: number,
    query: (connection: DuckDBConnection) => Promise<Uint8Array[]>,
  ) => {
    const end = endsAt();
    const leave = await enter(statements, projectId, { endsAt: end, isAlone: services.isSuspect(projectId) });
    services.onStatement(projectId, 1);
    return await queries.run(query, { signal: callerSignal(), endsAt: end, isForeign: true }).finally(() => {
      services.onStatement(projectId, -1);
      leave();
    });
  };
  const runLong: RunQuery = async (query) => {
    const leave = await enter(exports, 0, {});
    return await queries.run(query, { signal: callerSignal() }).finally(leave);
  };
  /** Where the properties of events `e` are for one question, which is counted as one however often it names them. */
  const eventProperties = (): PropertyPlace => {
    const names = new Set<string>();
    return loader.propertyColumns.place("e", (name) => {
      if (!names.has(name)) services.onProperties?.([name]);
      names.add(name);
    });
  };
  const persons = ({ projectId }: { projectId: number }) => ({
    ...{ people, mirror, run: runFor(projectId), eventProperties: eventProperties() },
  });
  return {
    events: async (filter) => {
      const leave = await enter(pages, filter.projectId, { endsAt: endsAt() });
      try {
        const { text, next } = await eventPage(services, filter, {
          run: runFor(filter.projectId),
          properties: eventProperties(),
        });
        return new RpcText([Buffer.from(text)], next ?? null, leave);
      } catch (error) {
        leave();
        throw error;
      }
    },
    trends: async (request) => {
      const { refresh, projectId } = request;
      if (refresh === "force_cache") return insights.find(request);
      await mirror.follow();
      const revision = `${loader.cursor("realtime")} ${loader.cursor("historical")} ${mirror.followed}`;
      return await insights.answer(request, { revision, refresh }, () =>
        runFor(projectId)((connection) =>
          computeInsight(connection, { ...request, eventProperties: eventProperties() }),
        ),
      );
    },
    flagCalls: (request) =>
      runFor(request.projectId)((connection) => countFlagCalls(connection, request, eventProperties())),
    reach: (request) => computeReach(persons(request), request),
    findPersons: (request) => findPersons(persons(request), request),
    fillCohortByFlag: (request) => fillCohortByFlag(persons(request), request),
    addCohortMembers: async ({ projectId, cohortId, distinctIds }) => {
      addCohortMembers(people, projectId, cohortId, { distinctIds });
      return countCohortMembers(people, cohortId);
    },
    addHashKeyOverrides: async ({ projectId, ...overrides }) =>
      addHashKeyOverrides(people, projectId, overrides),
    removeOldEvents: ({ cutoffs }) =>
      runLong((connection) => removeOldEvents(connection, cutoffs)).finally(() => insights.clear()),
    holdCheckpoints: async ({ ms, checkpointFirst }) => {
      loader.holdCheckpoints(ms);
      if (checkpointFirst) await queries.run((other) => loader.checkpointForCopy(other));
      return null;
    },
    ...analysisHandlers({
      ...{ people, mirror, runFor, runLong, resultBytesMax: services.resultBytesMax },
      runStatement: async (projectId, query) => {
        const leave = await enter(answers, projectId, { endsAt: endsAt() });
        try {
          return new RpcText(await runStatement(projectId, query), null, leave);
        } catch (error) {
          leave();
          throw error;
        }
      },
    }),
  };
}

/** @throws {QueryBusy} @throws {QueryTimedOut} it did not get its turn in time. @throws the caller's reason to go. */
async function enter(
  semaphore: Semaphore,
  projectId: number,
  { endsAt, isAlone }: { endsAt?: number; isAlone?: boolean },
): Promise<() => void> {
  const caller = callerSignal();
  const timeout =
    endsAt === undefined ? undefined : AbortSignal.timeout(Math.max(1, endsAt - performance.now()));
  const signals = [caller, timeout].filter((signal) => signal !== undefined);
  try {
    return await semaphore.enter(projectId, { signal: AbortSignal.any(signals), isAlone });
  } catch (error) {
    if (error instanceof SemaphoreFull) throw new QueryBusy();
    throw timeout?.aborted && !caller?.aborted ? new QueryTimedOut() : error;
  }
}

async function eventPage(
  { people, mirror }: QueryServices,
  filter: EventFilter,
  { run, properties }: { run: RunQuery; properties: PropertyPlace },
) {
  if (filter.properties?.some(isAboutPerson)) await mirror.follow();
  const page = await run((connection) => listEvents(connection, withDistinctIds(people, filter), properties));
  const { text, count } = eventsText(page.events, {
    personTexts: personTextsOf(people, filter.projectId, page.events),
    groupTypeIndexes: new Map(
      listGroupTypes(people, filter.projectId).map(({ name, typeIndex }) => [name, typeIndex]),
    ),
  });
  return { text, next: count < page.events.length ? positionOf(page.events[count - 1]!) : page.next };
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
