/** Exposures and sums of experiments, with events in DuckDB. */

import { test } from "bun:test";
import { ServerProcess } from "../support/server.ts";
import { describeResults } from "./result-examples.ts";

describeResults(test, async () => {
  const server = await ServerProcess.start();
  return { server, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
});
