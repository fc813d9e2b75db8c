/** What the engine answers: each question by its subject, few at a time, and none project before all others. */

import { isAboutPerson } from "../events/event-filters.ts";
import { countFlagCalls } from "../events/insights/flag-calls.ts";
import { InsightCache } from "../events/insights/insight-cache.ts";
import { computeInsight } from "../events/insights/insights.ts";
import { type EventFilter, listEvents, positionOf } from "../events/list.ts";
import { eventsText } from "../events/page.ts";
import type { QueryRequest } from "../events/query/run-query.ts";
import { callerSignal } from "../lib/caller.ts";
import { AppError } from "../lib/errors.ts";
import { Semaphore, SemaphoreFull } from "../lib/semaphore.ts";
import { addCohortMembers, countCohortMembers } from "../people/cohort-members.ts";
import { listGroupTypes } from "../people/groups.ts";
import { addHashKeyOverrides } from "../people/hash-key-overrides.ts";
import type { PeopleDb } from "../people/open.ts";
import { distinctIdsOf, personByUuid } from "../people/reader.ts";
import { type RpcBytes, RpcText } from "../rpc/server.ts";
import { analysisHandlers } from "./analysis.ts";
import type { EventBackend } from "./backend.ts";
import { personTextsOf } from "./event-persons.ts";
import { fillCohortByFlag, findPersons, type RunQuery } from "./person-queries.ts";
import { producedBytes } from "./produced-bytes.ts";
import type { Queries } from "./query-types.ts";
import { computeReach } from "./reach.ts";
import { QueryTimedOut, type RunOptions } from "./running-queries.ts";

export interface QueryServices {
  backend: EventBackend;
  people: PeopleDb;
  queryTimeoutMs: number;
  /** Runs a change of the store of persons, where several fronts share it for all of them. */
  change: <Result>(run: () => Result | Promise<Result>) => Promise<Result>;
  /** Whether statements of a project have to run alone. */
  isSuspect: (projectId: number) => boolean;
  /** Told when somebody's statement begins and ends. */
  onStatement: (projectId: number, change: 1 | -1) => void;
  /** Told when somebody waits until events are loaded. */
  hurry: () => void;
}

/** Too many questions wait already. */
class QueryBusy extends AppError {
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
/** Apart from other statements: they last as long as somebody reads. */
const downloadLimits = { total: 2, perKey: 1, waiting: 16 };
/** Apart from the queries, which must not wait for minutes. */
const exportLimits = { total: 1, perKey: 1, waiting: 64 };

export type Handlers = {
  [Name in Exclude<keyof Queries, "slowQueries">]: (
    request: Queries[Name]["request"],
  ) => Promise<Queries[Name]["answer"] | RpcText | RpcBytes>;
};

/** What answers each question. */
export function queryHandlers(services: QueryServices): Handlers {
  const { people, backend, change } = services;
  const { copies, events } = backend;
  const own = new Semaphore(ownLimits);
  const statements = new Semaphore(statementLimits);
  const exports = new Semaphore(exportLimits);
  const downloads = new Semaphore(downloadLimits);
  const pages = new Semaphore(pageLimits);
  const answers = new Semaphore(answerLimits);
  const insights = new InsightCache();
  const endsAt = () => performance.now() + services.queryTimeoutMs;

  const runFor = (projectId: number): RunQuery => {
    const end = endsAt();
    return async (query) => {
      const leave = await enter(own, projectId, { endsAt: end });
      return await backend.run(query, { signal: callerSignal(), endsAt: end }).finally(leave);
    };
  };
  const runStatement = async (request: QueryRequest) => {
    const { projectId } = request;
    const end = endsAt();
    const leave = await enter(statements, projectId, { endsAt: end, isAlone: services.isSuspect(projectId) });
    services.onStatement(projectId, 1);
    return await backend.runStatement(request, { signal: callerSignal(), endsAt: end }).finally(() => {
      services.onStatement(projectId, -1);
      leave();
    });
  };
  const runLong: RunQuery = async (query) => {
    const leave = await enter(exports, 0, {});
    return await backend.run(query, { signal: callerSignal() }).finally(leave);
  };
  const persons = ({ projectId }: { projectId: number }) => ({ people, copies, run: runFor(projectId) });
  return {
    events: async (filter) => {
      const leave = await enter(pages, filter.projectId, { endsAt: endsAt() });
      try {
        const { text, next } = await eventPage(services, filter, runFor(filter.projectId));
        return new RpcText([Buffer.from(text)], next ?? null, leave);
      } catch (error) {
        leave();
        throw error;
      }
    },
    trends: async (request) => {
      const { refresh, projectId } = request;
      if (refresh === "force_cache") return insights.find(request);
      await copies.follow();
      const revision = `${events.cursor("realtime")} ${events.cursor("historical")} ${copies.followed}`;
      return await insights.answer(request, { revision, refresh }, () =>
        runFor(projectId)((store) => computeInsight(store, request)),
      );
    },
    download: async (request) => {
      await copies.follow();
      const { projectId } = request;
      const isAlone = services.isSuspect(projectId);
      const leave = await enter(downloads, projectId, { endsAt: endsAt(), isAlone });
      services.onStatement(projectId, 1);
      const options: RunOptions = { endsAt: endsAt() };
      return await producedBytes(
        (sink, signal) =>
          backend.download(request, sink, Object.assign(options, { signal })).finally(() => {
            services.onStatement(projectId, -1);
            leave();
          }),
        // Waiting for the reader is not the query's time.
        (waitedMs) => {
          options.endsAt! += waitedMs;
        },
      );
    },
    flagCalls: (request) => runFor(request.projectId)((store) => countFlagCalls(store, request)),
    reach: (request) => computeReach(persons(request), request),
    findPersons: (request) => findPersons(persons(request), request),
    fillCohortByFlag: async (request) => {
      // Nobody waits for it; what it has added is there afterwards.
      const answer = await fillCohortByFlag(persons(request), request);
      return await change(() => answer);
    },
    addCohortMembers: ({ projectId, cohortId, distinctIds }) =>
      change(() => {
        addCohortMembers(people, projectId, cohortId, { distinctIds });
        return countCohortMembers(people, cohortId);
      }),
    addHashKeyOverrides: ({ projectId, ...overrides }) =>
      change(() => addHashKeyOverrides(people, projectId, overrides)),
    removeOldEvents: async ({ cutoffs }) => {
      const leave = await enter(exports, 0, {});
      return await backend.removeOldEvents(cutoffs, { signal: callerSignal() }).finally(() => {
        insights.clear();
        leave();
      });
    },
    readEverything: async () => {
      const leave = await enter(exports, 0, {});
      await backend.readEverything({ signal: callerSignal() }).finally(leave);
      return null;
    },
    holdCheckpoints: async ({ ms, checkpointFirst }) => {
      await backend.holdCheckpoints(ms, checkpointFirst === true);
      return null;
    },
    ...analysisHandlers({
      ...{ people, backend, runFor, runLong, hurry: services.hurry },
      runStatement: async (request) => {
        const leave = await enter(answers, request.projectId, { endsAt: endsAt() });
        try {
          return new RpcText(await runStatement(request), null, leave);
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

async function eventPage({ people, backend }: QueryServices, filter: EventFilter, run: RunQuery) {
  if (filter.properties?.some(isAboutPerson)) await backend.copies.follow();
  const page = await run((store) => listEvents(store, withDistinctIds(people, filter)));
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
