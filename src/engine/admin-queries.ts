/** Queries of operators: SQL over views, exports, and stored UUIDs. For the engine and for commands. */

import { computeQuery } from "../events/api/compute-query.ts";
import { hasHistory, knownUuids, lanesOfIds, storedEvents } from "../events/duckdb/known-uuids.ts";
import { exportPage } from "../events/export/page.ts";
import { eventSums, readMigrationPage } from "../events/migration-reader.ts";
import type { QueryRequest } from "../events/query/run-query.ts";
import { forWebQueries } from "../events/web/property-columns.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { RpcString } from "../rpc/server.ts";
import type { EventBackend } from "./backend.ts";
import type { RunQuery } from "./person-queries.ts";
import type { Queries } from "./query-types.ts";

export interface AdminQueryDeps {
  persons: PersonReader;
  backend: EventBackend;
  /** Runs on a separate connection with the time limit. */
  runFor: (projectId: number) => RunQuery;
  /** Runs a user's statement and serializes the result. */
  runStatement: (request: QueryRequest) => Promise<RpcString>;
  /** Runs without a time limit. */
  runLong: RunQuery;
  /** Called when a reader waits for events to be loaded. */
  hurry: () => void;
}

export type AdminQueryName =
  | "query"
  | "web"
  | "exportPage"
  | "knownUuids"
  | "hasHistory"
  | "storedEvents"
  | "personsOf"
  | "importedPersons"
  | "loadedSeqs"
  | "movePage"
  | "eventSums";

export type AdminQueries = {
  [Name in AdminQueryName]: (request: Queries[Name]["request"]) => Promise<Queries[Name]["answer"]>;
};

type AdminQueryHandlers = Omit<AdminQueries, "query"> & {
  query: (request: Queries["query"]["request"]) => Promise<RpcString>;
};

export function adminQueryHandlers(deps: AdminQueryDeps): AdminQueryHandlers {
  const { persons: reader, backend, runFor, runStatement, runLong } = deps;
  const loadedSeqs = () => ({
    realtime: backend.events.cursor("realtime"),
    historical: backend.events.cursor("historical"),
  });
  return {
    query: async (request) => {
      await backend.copies.follow();
      return await runStatement(request);
    },
    web: async (request) => {
      await backend.copies.follow();
      return await runFor(request.projectId)((store) => computeQuery(forWebQueries(store, []), request));
    },
    exportPage: async (request) => {
      if (request.after === undefined) await backend.copies.follow();
      return await runLong((store) =>
        exportPage({ store, persons: reader, loadedSeqs: loadedSeqs() }, request),
      );
    },
    knownUuids: async ({ projectId, uuids }) => {
      const doubtful = uuids.filter((uuid) => !backend.events.isNew?.(projectId, uuid));
      if (doubtful.length === 0) return [];
      return await runFor(projectId)((store) => knownUuids(store, projectId, doubtful));
    },
    hasHistory: async ({ projectId }) => await runFor(projectId)((store) => hasHistory(store, projectId)),
    storedEvents: async ({ projectId, uuids }) =>
      await runFor(projectId)((store) => storedEvents(store, projectId, uuids)),
    personsOf: async ({ projectId, distinctIds }) => await reader.distinctIdOwners(projectId, distinctIds),
    importedPersons: async ({ projectId, distinctIds }) => {
      const persons = await reader.personsWithIds(projectId, distinctIds);
      const lanes = await runFor(projectId)((store) =>
        lanesOfIds(
          store,
          projectId,
          persons.flatMap((person) => person.distinctIds),
        ),
      );
      return persons.map(({ uuid, distinctIds }) => {
        const found = distinctIds.map((id) => lanes.get(id));
        return {
          uuid,
          hasHistory: found.some((each) => each?.hasHistory),
          hasRealtime: found.some((each) => each?.hasRealtime),
        };
      });
    },
    loadedSeqs: async () => {
      deps.hurry();
      return loadedSeqs();
    },
    movePage: (request) => runLong((store) => readMigrationPage(store, request)),
    eventSums: (until) => runLong((store) => eventSums(store, until)),
  };
}
