/** Exposures and sums of experiments, with events in ClickHouse: the same examples. */

import { hasClickHouse, TestClickHouse, testWithClickHouse } from "../support/clickhouse.ts";
import { ServerProcess } from "../support/server.ts";
import { describeResults } from "./result-examples.ts";

describeResults(testWithClickHouse("experiments with events in ClickHouse"), async () => {
  if (!hasClickHouse) return undefined;
  const clickhouse = await TestClickHouse.start();
  await clickhouse.run("CREATE DATABASE flagkeep");
  const server = await ServerProcess.start({ args: ["--events-url", clickhouse.url("flagkeep")] });
  return {
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await clickhouse[Symbol.asyncDispose]();
    },
  };
});
