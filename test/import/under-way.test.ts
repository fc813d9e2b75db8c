/** Batches of an import on their way: some at the same time, in order, none behind one that failed. */

import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { importAll } from "../../src/import/import-all.ts";
import type { ImportClient } from "../../src/import/import-client.ts";
import { temporaryFolder, until } from "../support/server.ts";

/** The first batch has a thousand records, the others five thousand. */
const records = 1_000 + 7 * 5_000;

const getUuid = (n: number) => `01900000-0000-7000-8000-${String(n).padStart(12, "0")}`;

function getFile(folder: string): string {
  const path = join(folder, "events.ndjson");
  const lines = Array.from({ length: records }, (_, n) =>
    JSON.stringify({
      uuid: getUuid(n),
      event: "seen",
      distinct_id: "a",
      timestamp: "2026-01-01T00:00:00Z",
      properties: { n },
    }),
  );
  writeFileSync(path, lines.join("\n"));
  return path;
}

function run(target: ImportClient, files?: string, onRecords: () => void = () => undefined) {
  const folder = temporaryFolder();
  const nothing = () => undefined;
  return importAll({
    source: files ?? getFile(folder),
    projectId: 1,
    dataDir: folder,
    stateFolder: join(folder, "state"),
    format: "auto",
    fields: [],
    isLinking: false,
    isDryRun: false,
    isResumed: false,
    maxRejects: 10,
    onBytes: nothing,
    onRecords,
    onReject: nothing,
    onFormat: nothing,
    target,
  });
}

/** A store that knows nothing and keeps what is sent; what it does takes until it is let. */
class SlowTarget implements ImportClient {
  readonly sent: number[] = [];
  asked = 0;
  sending = 0;
  arrived = 0;
  mostUnderWay = 0;
  private readonly opened = Promise.withResolvers<void>();

  constructor(private readonly failing?: number) {}

  open(): void {
    this.opened.resolve();
  }

  async knownUuids(uuids: string[]): Promise<Set<string>> {
    this.asked += 1;
    this.mostUnderWay = Math.max(this.mostUnderWay, this.asked - this.arrived);
    // The later ones are answered first.
    await Bun.sleep(30 - 10 * (this.asked % 3));
    expect(new Set(uuids).size).toBe(uuids.length);
    return new Set();
  }

  async send(requests: Uint8Array): Promise<void> {
    this.sending += 1;
    expect(this.sending).toBe(1);
    await this.opened.promise;
    if (this.sent.length >= (this.failing ?? records)) throw new Error("no");
    for (const request of Buffer.from(requests).toString().trimEnd().split("\n"))
      for (const { properties } of JSON.parse(request).batch) this.sent.push(properties.n);
    this.sending -= 1;
    this.arrived += 1;
  }

  limits = async () => ({ eventBytesMax: 20 * 1024 * 1024 });
  hasHistory = async () => true;
  storedEvents = async () => [];
  personsOf = async () => new Map();
  importedPersons = async () => [];
  deletePerson = async () => undefined;
  settled = async () => undefined;
  lastSeq = async () => this.sent.length;
  waitUntilLoaded = async () => undefined;
}

test("four batches at most, sent one after the other in order", async () => {
  const target = new SlowTarget();
  const done = run(target);
  await until(() => target.asked === 4 && target.sending === 1, "four batches are under way");
  target.open();
  const { counts, isComplete } = await done;
  expect({ ...counts, isComplete }).toMatchObject({ accepted: records, duplicate: 0, isComplete: true });
  expect(target.sent).toEqual(Array.from({ length: records }, (_, n) => n));
  expect(target.mostUnderWay).toBe(4);
});

test("the bytes in flight of many files are limited", async () => {
  const folder = join(temporaryFolder(), "files");
  mkdirSync(folder);
  const files = 40;
  const bytesOfEach = 2 * 1024 * 1024;
  for (let n = 0; n < files; n++)
    writeFileSync(
      join(folder, `${n}.ndjson`),
      JSON.stringify({
        uuid: getUuid(n),
        event: "seen",
        distinct_id: "a",
        timestamp: "2026-01-01T00:00:00Z",
        properties: { n, filler: "x".repeat(bytesOfEach) },
      }),
    );
  const target = new SlowTarget();
  let read = 0;
  const done = run(target, folder, () => (read += 1));
  await until(() => target.sending === 1 && read >= 8, "as many are read as may be");
  // As long as it takes to read all of them twice.
  for (let n = 0; n < 2 * files; n++) await Bun.file(join(folder, `${n % files}.ndjson`)).json();
  expect(read).toBeLessThanOrEqual(10);
  target.open();
  const { counts } = await done;
  expect(counts).toMatchObject({ accepted: files });
  expect(target.sent).toEqual(Array.from({ length: files }, (_, n) => n));
});

test("when one fails, no later one is sent, and the import ends with its error", async () => {
  const target = new SlowTarget(11_000);
  target.open();
  await expect(run(target)).rejects.toThrow("no");
  expect(target.sent).toEqual(Array.from({ length: 11_000 }, (_, n) => n));
});
