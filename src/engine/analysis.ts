/** The questions of operators: SQL over views, exports, and which uuids are stored. For the engine and for commands. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { exportPage, loadedSeqs } from "../events/export/page.ts";
import { countKnown } from "../events/known-uuids.ts";
import type { PersonMirror } from "../events/person-mirror.ts";
import { runQuery } from "../events/query/run-query.ts";
import type { ViewSources } from "../events/query/views.ts";
import type { RpcText } from "../rpc/server.ts";
import type { RunQuery } from "./person-queries.ts";
import type { Queries } from "./query-types.ts";

export interface AnalysisServices extends ViewSources {
  mirror: PersonMirror;
  resultBytesMax: number;
  /** Runs with a connection of its own, stopped at the time limit. */
  runFor: (projectId: number) => RunQuery;
  /** The same for what somebody else wrote; makes the answer's text. */
  runStatement: (
    projectId: number,
    query: (connection: DuckDBConnection) => Promise<Uint8Array[]>,
  ) => Promise<RpcText>;
  /** The same without a time limit. */
  runLong: RunQuery;
}

export type AnalysisName = "query" | "exportPage" | "countKnown" | "loadedSeqs";

export type Analysis = {
  [Name in AnalysisName]: (request: Queries[Name]["request"]) => Promise<Queries[Name]["answer"]>;
};

type AnalysisHandlers = Omit<Analysis, "query"> & {
  query: (request: Queries["query"]["request"]) => Promise<RpcText>;
};

export function analysisHandlers(services: AnalysisServices): AnalysisHandlers {
  const { people, mirror, runFor, runStatement, runLong } = services;
  return {
    query: async (request) => {
      await mirror.follow();
      return await runStatement(request.projectId, (connection) => runQuery(connection, services, request));
    },
    exportPage: async (request) => {
      if (request.after === undefined) await mirror.follow();
      return await runLong((connection) => exportPage({ connection, people }, request));
    },
    countKnown: ({ projectId, uuids }) =>
      runFor(projectId)((connection) => countKnown(connection, projectId, uuids)),
    loadedSeqs: () => runFor(0)(loadedSeqs),
  };
}
