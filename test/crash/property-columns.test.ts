/** Kills the engine while columns of properties are filled: filling continues, and the answers are those of the JSON. */

import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openEventDatabase } from "../../src/events/duckdb/database.ts";
import type { Status } from "../../src/operate/status-schema.ts";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../support/server.ts";

const directory = await initializedDirectory();
afterAll(() => rmSync(directory.dataDir, { recursive: true, force: true }));

const events = 600_000;

test("a column is filled in the background, survives kills, and answers as before", async () => {
  await (await ServerProcess.start({ directory })).stop();
  await storeEvents();
  const columns = async () => {
    const { stdout } = await flagkeep(["status", "--json", "--data-dir", directory.dataDir]);
    return (JSON.parse(stdout) as Status).engine.properties;
  };
  await using server = await ServerProcess.start({ directory });
  const before = await until(() => breakdown(server), "the first answer is there");
  expect(before.map(({ count }) => count).reduce((sum, count) => sum + count)).toBe(events);
  const killed = new Set<number>();
  for (let asked = 0; asked < 3; asked++) await until(() => breakdown(server), "the question is counted");
  for (let kills = 0; kills < 2; kills++) {
    await until(async () => {
      const [column] = await columns();
      return column !== undefined && column.filled > kills * 0.2 && column.filled < 1;
    }, "the column is being filled");
    for (const pid of await server.enginePids()) {
      killed.add(pid);
      process.kill(pid, "SIGKILL");
    }
    // Half full a column is not read.
    expect(await until(() => breakdown(server), "the engine is back")).toEqual(before);
  }
  expect(killed.size).toBe(2);
  await until(async () => (await columns())[0]?.filled === 1, "the column is full");
  expect(await columns()).toEqual([{ name: "plan", filled: 1 }]);
  const after = await breakdown(server);
  expect(after).toEqual(before);
}, 120_000);

/** Of all events, computed again. */
async function breakdown(server: ServerProcess): Promise<{ value: unknown; count: number }[] | undefined> {
  const response = await server.api(`/api/projects/${server.initialized.project.id}/query/`, {
    method: "POST",
    body: {
      refresh: "force_blocking",
      query: {
        kind: "TrendsQuery",
        series: [{ event: "thing" }],
        breakdownFilter: { breakdown: "plan" },
        dateRange: { date_from: "-3d" },
      },
    },
  });
  if (response.status !== 200) return undefined;
  const { results } = (await response.json()) as { results: { breakdown_value: unknown; count: number }[] };
  return results
    .map(({ breakdown_value: value, count }) => ({ value, count }))
    .sort((one, other) => String(one.value).localeCompare(String(other.value)));
}

/** Into the file of a stopped server: sending as many takes a minute. */
async function storeEvents(): Promise<void> {
  const database = await openEventDatabase(join(directory.dataDir, "events.duckdb"), {
    memoryLimitBytes: 512 * 1024 ** 2,
    threads: 1,
    temporaryFolder: join(directory.dataDir, "work", "duckdb"),
  });
  const connection = await database.connect();
  const at = `make_timestamp(${(Date.now() - 86_400_000) * 1_000})`;
  await connection.run(
    `INSERT INTO events SELECT ${directory.initialized.project.id}, false, i - ${events}, uuid(), NULL, 'thing', 'user', ${at}, ${at}, 'full', NULL,
       '{"plan":' || CASE i % 3 WHEN 0 THEN '"free"' WHEN 1 THEN '1.0' ELSE 'null' END || ',"filler":"' || repeat('x', 400) || '"}'
     FROM range(${events}) t(i)`,
  );
  await connection.run("CHECKPOINT");
  database.close();
}
