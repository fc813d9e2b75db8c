/** The questions of operators: SQL over views, exports, and which uuids are stored. For the engine and for commands. */

import { hasHistory, knownUuids, storedEvents } from "../events/duckdb/known-uuids.ts";
import { exportPage } from "../events/export/page.ts";
import { eventSums, movePage } from "../events/move.ts";
import type { QueryRequest } from "../events/query/run-query.ts";
import type { PeopleDb } from "../people/open.ts";
import { distinctIdOwners } from "../people/reader.ts";
import type { RpcText } from "../rpc/server.ts";
import type { EventBackend } from "./backend.ts";
import type { RunQuery } from "./person-queries.ts";
import type { Queries } from "./query-types.ts";

export interface AnalysisServices {
  people: PeopleDb;
  backend: EventBackend;
  /** Runs with a connection of its own, stopped at the time limit. */
  runFor: (projectId: number) => RunQuery;
  /** Runs what somebody else wrote; makes the answer's text. */
  runStatement: (request: QueryRequest) => Promise<RpcText>;
  /** Runs without a time limit. */
  runLong: RunQuery;
  /** Who asks how far loading has come waits for it. */
  hurry: () => void;
}

export type AnalysisName =
  | "query"
  | "exportPage"
  | "knownUuids"
  | "hasHistory"
  | "storedEvents"
  | "personsOf"
  | "loadedSeqs"
  | "movePage"
  | "eventSums";

export type Analysis = {
  [Name in AnalysisName]: (request: Queries[Name]["request"]) => Promise<Queries[Name]["answer"]>;
};

type AnalysisHandlers = Omit<Analysis, "query"> & {
  query: (request: Queries["query"]["request"]) => Promise<RpcText>;
};

export function analysisHandlers(services: AnalysisServices): AnalysisHandlers {
  const { people, backend, runFor, runStatement, runLong } = services;
  const loadedSeqs = () => ({
    realtime: backend.events.cursor("realtime"),
    historical: backend.events.cursor("historical"),
  });
  return {
    query: async (request) => {
      await backend.copies.follow();
      return await runStatement(request);
    },
    exportPage: async (request) => {
      if (request.after === undefined) await backend.copies.follow();
      return await runLong((store) => exportPage({ store, people, loadedSeqs: loadedSeqs() }, request));
    },
    knownUuids: async ({ projectId, uuids }) => {
      const doubtful = uuids.filter((uuid) => !backend.events.isNew?.(projectId, uuid));
      if (doubtful.length === 0) return [];
      return await runFor(projectId)((store) => knownUuids(store, projectId, doubtful));
    },
    hasHistory: async ({ projectId }) => await runFor(projectId)((store) => hasHistory(store, projectId)),
    storedEvents: async ({ projectId, uuids }) =>
      await runFor(projectId)((store) => storedEvents(store, projectId, uuids)),
    personsOf: async ({ projectId, distinctIds }) => distinctIdOwners(people, projectId, distinctIds),
    loadedSeqs: async () => {
      services.hurry();
      return loadedSeqs();
    },
    movePage: (request) => runLong((store) => movePage(store, request)),
    eventSums: (until) => runLong((store) => eventSums(store, until)),
  };
}
