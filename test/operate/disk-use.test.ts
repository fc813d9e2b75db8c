import { expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CachedFolderUsage, folderUsage, storeUsage } from "../../src/operate/disk-usage.ts";
import { temporaryFolder } from "../support/server.ts";

/** A data directory in which each part has a size of its own. */
function directory(): string {
  const dataDir = temporaryFolder();
  const files: Record<string, number> = {
    "flagkeep.sqlite": 1,
    "flagkeep.sqlite-wal": 2,
    "people.sqlite": 4,
    "events.duckdb": 8,
    "events.duckdb.wal": 16,
    "journal/quarantine/a.ndjson": 32,
    "native/1/duckdb.node": 64,
    "backups/flagkeep-1.tar.zst": 128,
    "backups/pieces/ab": 256,
    "backups-unsent/flagkeep-2.tar.zst": 512,
    "import-state/uploads/1/files/events.ndjson": 1024,
    "work/rows": 2048,
    "backup-work/1/events.duckdb": 4096,
    "certificates/key.pem": 8192,
    "payload.key": 16384,
  };
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(join(dataDir, name, ".."), { recursive: true });
    writeFileSync(join(dataDir, name), new Uint8Array(bytes));
  }
  return dataDir;
}

test("each file counts in one part, so that the parts together are the directory", async () => {
  const dataDir = directory();
  expect(storeUsage(dataDir)).toEqual({
    metadata_bytes: 3,
    people_bytes: 4,
    events_bytes: 24,
    journal_bytes: 0,
    quarantine_bytes: 32,
    archive_bytes: 0,
    library_bytes: 64,
  });
  expect(await folderUsage(dataDir)).toEqual({
    backups_bytes: 128 + 256 + 512,
    other_bytes: 1024 + 2048 + 4096 + 8192 + 16384,
  });
});

test("targets of links are not counted; a missing folder has size 0", async () => {
  const dataDir = temporaryFolder();
  symlinkSync(directory(), join(dataDir, "elsewhere"));
  expect(await folderUsage(dataDir)).toEqual({ backups_bytes: 0, other_bytes: 0 });
});

test("of very many entries those up to a limit are counted", async () => {
  const dataDir = temporaryFolder();
  mkdirSync(join(dataDir, "backups"));
  for (let n = 0; n < 500; n++) writeFileSync(join(dataDir, "backups", String(n)), "x");
  expect(await folderUsage(dataDir, 450)).toEqual({ backups_bytes: 450, other_bytes: 0 });
  expect(await folderUsage(dataDir, 501)).toEqual({ backups_bytes: 500, other_bytes: 0 });
});

test("other work continues while folders are measured", async () => {
  const dataDir = temporaryFolder();
  mkdirSync(join(dataDir, "work"));
  for (let n = 0; n < 2_000; n++) writeFileSync(join(dataDir, "work", String(n)), "x");
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await folderUsage(dataDir);
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(10);
});

test("figures are cached for requests that follow soon", async () => {
  const dataDir = directory();
  const retained = new CachedFolderUsage(dataDir);
  const first = await retained.read();
  writeFileSync(join(dataDir, "backups", "another"), "x");
  expect(await retained.read()).toEqual(first);
  expect((await folderUsage(dataDir)).backups_bytes).toBe(first.backups_bytes + 1);
});
