/** What is known of the last backup, also where it cannot be written down. */

import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { readLastBackup, recordBackup, recordFailure } from "../../src/backup/last-backup.ts";
import { paths } from "../../src/paths.ts";
import { temporaryFolder } from "../support/server.ts";

test("a failure that cannot be written is reported by its process until a later backup succeeds", async () => {
  const dataDir = join(temporaryFolder(), "gone");
  await recordFailure(dataDir, new Date("2026-01-02T03:04:05Z"), "no room");
  expect(readLastBackup(dataDir)).toMatchObject({ failed_at: "2026-01-02T03:04:05.000Z", error: "no room" });
  mkdirSync(dirname(paths(dataDir).lastBackup), { recursive: true });
  const times = { created_at: "2026-01-03T00:00:00.000Z", verified_at: "2026-01-03T00:00:01.000Z" };
  await recordBackup(dataDir, { ...times, file: "f", destination: null, bytes: 1, positions: [] });
  expect(readLastBackup(dataDir)).toMatchObject({ ...times, failed_at: null, error: null });
});
