/** What a monitoring system reads at `/metrics`. */

import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flagkeep, ServerProcess, until } from "../support/server.ts";

async function figures(server: ServerProcess): Promise<Map<string, number>> {
  const response = await fetch(`${server.url}/metrics`);
  expect(response.headers.get("content-type")).toStartWith("text/plain");
  const lines = (await response.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

test("events, the engine and backups can be watched", async () => {
  await using server = await ServerProcess.start();
  const first = await figures(server);
  for (const lane of ["realtime", "historical"])
    expect(first.get(`flagkeep_events_dropped_total{lane="${lane}"}`)).toBe(0);
  expect(first.get('flagkeep_refused_total{role="capture",reason="disk_full"}')).toBe(0);
  expect(first.get('flagkeep_refused_total{role="query",reason="query_busy"}')).toBe(0);
  const uuid = Bun.randomUUIDv7();
  const event = { event: "hello", distinct_id: "ann", uuid };
  await server.batch([event, event, { event: "hello", distinct_id: "bob" }]);
  await server.eventsWhenStored(2);
  // The engine reports its counts after the events are readable.
  const before = await until(async () => {
    const now = await figures(server);
    return now.get('flagkeep_events_stored_total{lane="realtime"}') === 2 && now;
  }, "the stored events are counted");
  expect(before.get('flagkeep_events_duplicate_total{lane="realtime"}')).toBe(1);
  expect(before.get('flagkeep_journal_acknowledged_entries{lane="realtime"}')).toBe(3);
  expect(before.get("flagkeep_engine_up")).toBe(1);
  expect(before.get("flagkeep_engine_restarts")).toBe(0);
  expect(before.get("flagkeep_backup_last_success_timestamp_seconds")).toBe(0);
  expect(before.get("flagkeep_backup_last_attempt_failed")).toBe(0);
  expect(before.has("nodejs_eventloop_lag_p99_seconds")).toBeTrue();

  const parts = ["own", "heap", "store_cache", "store_work"];
  const memory = await until(async () => {
    const now = await figures(server);
    const bytes = parts.map((part) => now.get(`flagkeep_engine_memory_bytes{part="${part}"}`));
    return bytes.every((value) => value !== undefined) && (bytes as number[]);
  }, "the engine has told what it has in memory");
  // Each but the store's cache, which may have been given up.
  for (const bytes of [memory[0]!, memory[1]!, memory[3]!]) expect(bytes).toBeGreaterThan(0);
  expect(memory[0]!).toBeGreaterThan(memory[1]!);

  const folder = mkdtempSync(join(tmpdir(), "flagkeep-metrics-"));
  const from = Date.now() / 1_000;
  const created = await flagkeep([
    "backup",
    "create",
    "--data-dir",
    server.dataDir,
    "--backup-destination",
    folder,
  ]);
  expect(created).toMatchObject({ code: 0 });
  const after = await figures(server);
  expect(after.get("flagkeep_backup_last_success_timestamp_seconds")).toBeGreaterThanOrEqual(from - 1);
  expect(after.get("flagkeep_backup_last_attempt_failed")).toBe(0);

  rmSync(folder, { recursive: true });
  const failed = await flagkeep([
    "backup",
    "create",
    "--data-dir",
    server.dataDir,
    "--backup-destination",
    "/proc/no-backups-here",
  ]);
  expect(failed.code).not.toBe(0);
  const last = await figures(server);
  expect(last.get("flagkeep_backup_last_attempt_failed")).toBe(1);
  expect(last.get("flagkeep_backup_last_success_timestamp_seconds")).toBe(
    after.get("flagkeep_backup_last_success_timestamp_seconds")!,
  );
}, 30_000);
