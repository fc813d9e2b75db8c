/** What commands that read many events have in common: settings, and a way to ask. */

import { type Ask, withAnalysis } from "../src/query/analysis-access.ts";
import { configOf } from "./settings.ts";

/** They count when the appliance does not run; a running one has its own. */
export const analysisSettings = [
  "data-dir",
  "query-timeout",
  "duckdb-memory-limit",
  "duckdb-threads",
] as const;

export async function analysisOf<Result>(
  options: object,
  work: (ask: Ask) => Promise<Result>,
): Promise<Result> {
  const config = configOf(options as Record<string, unknown>);
  return await withAnalysis(
    {
      dataDir: config["data-dir"],
      memoryLimitBytes: config["duckdb-memory-limit"],
      threads: config["duckdb-threads"],
      queryTimeoutMs: config["query-timeout"],
    },
    work,
  );
}
