/** Dispatches the engine's queries, limiting concurrency in total and per project. */

import { computeQuery } from "../events/api/compute-query.ts";
import { isAboutPerson } from "../events/event-filters.ts";
import type { InsightResults } from "../events/insights/event-source.ts";
import { computeExperiment, findExposed } from "../events/insights/experiment-sql.ts";
import { countFlagCalls } from "../events/insights/flag-evaluations.ts";
import { InsightCache, type Refresh } from "../events/insights/insight-cache.ts";
import { computeSurvey, streamSurvey } from "../events/insights/survey.ts";
import { type EventFilter, getPosition, listEvents } from "../events/list.ts";
import type { QueryRequest } from "../events/query/run-query.ts";
import { serializeEvents } from "../events/serialize.ts";
import type { EventSql } from "../events/sql-dialect.ts";
import { forWebQueries } from "../events/web/property-columns.ts";
import { webPropertyNames } from "../events/web/visit-fields.ts";
import { findWebQuery, webCaching } from "../events/web/web-query.ts";
import { clientSignal } from "../lib/cancellation.ts";
import { CapacityExceededError, Semaphore } from "../lib/concurrency.ts";
import { AppError } from "../lib/errors.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { PersonWriter } from "../persons/person-writer.ts";
import { type RpcBytes, RpcString } from "../rpc/server.ts";
import { adminQueryHandlers } from "./admin-queries.ts";
import type { EventBackend } from "./backend.ts";
import { computeBlastRadius } from "./blast-radius.ts";
import { getPersonJson } from "./event-persons.ts";
import { fillCohortByFlag, findPersons, type RunQuery } from "./person-queries.ts";
import { pinExperimentProperties } from "./pinned-properties.ts";
import { pullStream } from "./pull-stream.ts";
import type { Queries } from "./query-types.ts";
import { QueryTimeoutError, type RunOptions } from "./running-queries.ts";

export interface QueryDeps {
  backend: EventBackend;
  persons: PersonReader;
  personWriter: PersonWriter;
  queryTimeoutMs: number;
  /** Whether statements of a project have to run alone. */
  isSuspect: (projectId: number) => boolean;
  /** Called when a user's statement starts and ends. */
  onStatement: (projectId: number, change: 1 | -1) => void;
  /** Called when a reader waits for events to be loaded. */
  hurry: () => void;
  /** The event properties among these names that no event of the project has; default: unknown. */
  absentProperties?: (projectId: number, names: readonly string[]) => string[];
}

/** Too many queries are queued. */
class QueryCapacityError extends AppError {
  readonly code = "query_busy";
  override readonly hint = "Try again in a few seconds.";
  constructor() {
    super("Too many queries are queued.");
  }
}

/** Concurrent API queries, in total and per project. */
const queryLimits = { total: 3, perKey: 2, waiting: 256 };
/** Statements of operators. */
const statementLimits = { total: 3, perKey: 2, waiting: 64 };
/** Results of statements that are being computed or read: each may be as large as `query-result-limit`. */
const answerLimits = { total: 8, perKey: 2, waiting: 64 };
/** Pages of events that are being computed or read. */
const pageLimits = { total: 16, perKey: 4, waiting: 256 };
/** Separate from other statements: downloads last as long as the client reads. */
const downloadLimits = { total: 2, perKey: 1, waiting: 16 };
/** Separate from queries, which must not wait for minutes. */
const exportLimits = { total: 1, perKey: 1, waiting: 64 };

/** Persons whose names are in one statement. */
const membersPerStatement = 10_000;

export type Handlers = {
  [Name in Exclude<keyof Queries, "slowQueries">]: (
    request: Queries[Name]["request"],
  ) => Promise<Queries[Name]["answer"] | RpcString | RpcBytes>;
};

/** The handler of each query. */
export function queryHandlers(deps: QueryDeps): Handlers {
  const { persons, personWriter, backend } = deps;
  const { copies, events } = backend;
  const querySlots = new Semaphore(queryLimits);
  const statements = new Semaphore(statementLimits);
  const exports = new Semaphore(exportLimits);
  const downloads = new Semaphore(downloadLimits);
  const pages = new Semaphore(pageLimits);
  const answers = new Semaphore(answerLimits);
  const insights = new InsightCache();
  const endsAt = () => performance.now() + deps.queryTimeoutMs;

  const runFor = (projectId: number): RunQuery => {
    const end = endsAt();
    return async (query) => {
      const leave = await enter(querySlots, projectId, { endsAt: end });
      return await backend.run(query, { signal: clientSignal(), endsAt: end }).finally(leave);
    };
  };
  const runStatement = async (request: QueryRequest) => {
    const { projectId } = request;
    const end = endsAt();
    const leave = await enter(statements, projectId, { endsAt: end, isAlone: deps.isSuspect(projectId) });
    deps.onStatement(projectId, 1);
    return await backend.runStatement(request, { signal: clientSignal(), endsAt: end }).finally(() => {
      deps.onStatement(projectId, -1);
      leave();
    });
  };
  const runLong: RunQuery = async (query) => {
    const leave = await enter(exports, 0, {});
    return await backend.run(query, { signal: clientSignal() }).finally(leave);
  };
  const countMembers = async (cohortId: number) => (await persons.cohortSizes([cohortId])).get(cohortId)!;
  const absent = (projectId: number) => deps.absentProperties?.(projectId, webPropertyNames) ?? [];
  const querying = ({ projectId }: { projectId: number }) => ({ persons, copies, run: runFor(projectId) });
  const insight = async (
    request: Queries["trends"]["request"],
    compute: (store: EventSql, revision: string) => Promise<InsightResults>,
    caching = (policy: { revision: string; refresh: Refresh }) => policy,
  ) => {
    const { refresh, projectId } = request;
    if (refresh === "force_cache") return insights.find(request);
    await copies.follow();
    const revision = `${events.cursor("realtime")} ${events.cursor("historical")} ${copies.followed}`;
    return await insights.answer(request, caching({ revision, refresh }), () =>
      runFor(projectId)((store) => compute(store, revision)),
    );
  };
  return {
    events: async (filter) => {
      const leave = await enter(pages, filter.projectId, { endsAt: endsAt() });
      try {
        const { text, next } = await eventPage(deps, filter, runFor(filter.projectId));
        return new RpcString([Buffer.from(text)], next ?? null, leave);
      } catch (error) {
        leave();
        throw error;
      }
    },
    trends: async (request) => {
      const web = findWebQuery(request.query);
      return await insight(
        request,
        (store, revision) =>
          computeQuery(web === undefined ? store : forWebQueries(store, absent(request.projectId)), {
            ...request,
            revision,
          }),
        web === undefined ? undefined : (caching) => webCaching(web, request, caching),
      );
    },
    experiment: (request) => insight(request, (store) => computeExperiment(store, request)),
    survey: (request) => insight(request, (store) => computeSurvey(store, request)),
    surveyResponses: async (request) => {
      await copies.follow();
      const leave = await enter(downloads, request.projectId, { endsAt: endsAt() });
      const options: RunOptions = { endsAt: endsAt() };
      return await pullStream(
        (sink, signal) =>
          backend
            .run((store) => streamSurvey(store, request, sink), Object.assign(options, { signal }))
            .finally(leave),
        (waitedMs) => {
          options.endsAt! += waitedMs;
        },
      );
    },
    download: async (request) => {
      await copies.follow();
      const { projectId } = request;
      const isAlone = deps.isSuspect(projectId);
      const leave = await enter(downloads, projectId, { endsAt: endsAt(), isAlone });
      deps.onStatement(projectId, 1);
      const options: RunOptions = { endsAt: endsAt() };
      return await pullStream(
        (sink, signal) =>
          backend.download(request, sink, Object.assign(options, { signal })).finally(() => {
            deps.onStatement(projectId, -1);
            leave();
          }),
        // Time spent waiting for the reader does not count for the query's limit.
        (waitedMs) => {
          options.endsAt! += waitedMs;
        },
      );
    },
    flagCalls: (request) => runFor(request.projectId)((store) => countFlagCalls(store, request)),
    blastRadius: (request) => computeBlastRadius(querying(request), request),
    findPersons: (request) => findPersons(querying(request), request),
    fillCohortByFlag: (request) => fillCohortByFlag({ ...querying(request), personWriter }, request),
    fillCohortByExposure: async ({ cohortId, ...request }) => {
      const { projectId } = request;
      await copies.follow();
      const uuids = await runFor(projectId)((store) => findExposed(store, request));
      for (let at = 0; at < uuids.length; at += membersPerStatement) {
        const part = uuids.slice(at, at + membersPerStatement);
        await personWriter.addCohortMembers(projectId, cohortId, { uuids: part });
      }
      return await countMembers(cohortId);
    },
    addCohortMembers: async ({ projectId, cohortId, distinctIds }) => {
      await personWriter.addCohortMembers(projectId, cohortId, { distinctIds });
      return await countMembers(cohortId);
    },
    addHashKeyOverrides: ({ projectId, ...overrides }) =>
      personWriter.addHashKeyOverrides(projectId, overrides),
    deleteExpiredEvents: async ({ cutoffs }) => {
      const leave = await enter(exports, 0, {});
      return await backend.deleteExpiredEvents(cutoffs, { signal: clientSignal() }).finally(() => {
        insights.clear();
        leave();
      });
    },
    readEverything: async () => {
      const leave = await enter(exports, 0, {});
      await backend.readEverything({ signal: clientSignal() }).finally(leave);
      return null;
    },
    pinProperties: async ({ names }) => {
      pinExperimentProperties(names);
      return null;
    },
    holdCheckpoints: async ({ ms, checkpointFirst }) => {
      await backend.holdCheckpoints(ms, checkpointFirst === true);
      return null;
    },
    ...adminQueryHandlers({
      persons,
      backend,
      runFor,
      runLong,
      hurry: deps.hurry,
      runStatement: async (request) => {
        const leave = await enter(answers, request.projectId, { endsAt: endsAt() });
        try {
          return new RpcString(await runStatement(request), null, leave);
        } catch (error) {
          leave();
          throw error;
        }
      },
    }),
  };
}

/**
 * @throws {QueryCapacityError} @throws {QueryTimeoutError} it did not get a slot in time
 * @throws the abort reason of the caller
 */
async function enter(
  semaphore: Semaphore,
  projectId: number,
  { endsAt, isAlone }: { endsAt?: number; isAlone?: boolean },
): Promise<() => void> {
  const caller = clientSignal();
  const timeout =
    endsAt === undefined ? undefined : AbortSignal.timeout(Math.max(1, endsAt - performance.now()));
  const signals = [caller, timeout].filter((signal) => signal !== undefined);
  try {
    return await semaphore.enter(projectId, { signal: AbortSignal.any(signals), isAlone });
  } catch (error) {
    if (error instanceof CapacityExceededError) throw new QueryCapacityError();
    throw timeout?.aborted && !caller?.aborted ? new QueryTimeoutError() : error;
  }
}

async function eventPage({ persons, backend }: QueryDeps, filter: EventFilter, run: RunQuery) {
  if (filter.properties?.some(isAboutPerson)) await backend.copies.follow();
  const page = await run(async (store) => listEvents(store, await withDistinctIds(persons, filter)));
  const { text, count } = serializeEvents(page.events, {
    personTexts: await getPersonJson(persons, filter.projectId, page.events),
    groupTypeIndexes: new Map(
      (await persons.groupTypes(filter.projectId)).map(({ name, typeIndex }) => [name, typeIndex]),
    ),
  });
  return { text, next: count < page.events.length ? getPosition(page.events[count - 1]!) : page.next };
}

/** A person's events are the events of all their distinct IDs. */
async function withDistinctIds(reader: PersonReader, filter: EventFilter): Promise<EventFilter> {
  if (filter.personUuid === undefined) return filter;
  const person = await reader.personByUuid(filter.projectId, filter.personUuid);
  const own = person === undefined ? [] : ((await reader.distinctIds([person])).get(person.id) ?? []);
  const distinctIds =
    filter.distinctIds === undefined ? own : own.filter((id) => filter.distinctIds!.includes(id));
  return { ...filter, distinctIds };
}
