/** The queries of operators: SQL over views, exports, and which uuids are stored. For the engine and for commands. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { countKnown } from "../events/known-uuids.ts";
import type { PersonMirror } from "../events/person-mirror.ts";
import { exportPage, loadedSeqs } from "../export/page.ts";
import { runQuery } from "../query/run-query.ts";
import type { ViewSources } from "../query/views.ts";
import type { Queries } from "./query-types.ts";

export interface AnalysisServices extends ViewSources {
  mirror: PersonMirror;
  /** Runs with a connection of its own, stopped at the time limit. */
  run: <Result>(query: (connection: DuckDBConnection) => Promise<Result>) => Promise<Result>;
  /** The same without a time limit. */
  runLong: <Result>(query: (connection: DuckDBConnection) => Promise<Result>) => Promise<Result>;
}

export type AnalysisName = "query" | "exportPage" | "countKnown" | "loadedSeqs";

export type Analysis = {
  [Name in AnalysisName]: (request: Queries[Name]["request"]) => Promise<Queries[Name]["answer"]>;
};

export function analysisHandlers(services: AnalysisServices): Analysis {
  const { people, mirror, run, runLong } = services;
  return {
    query: async (request) => {
      await mirror.follow();
      return await run((connection) => runQuery(connection, services, request));
    },
    exportPage: async (request) => {
      if (request.after === undefined) await mirror.follow();
      return await runLong((connection) => exportPage({ connection, people }, request));
    },
    countKnown: ({ projectId, uuids }) => run((connection) => countKnown(connection, projectId, uuids)),
    loadedSeqs: () => run(loadedSeqs),
  };
}
