/**
 * The event store's file is harmed in every region, in many ways: whether the corruption shows when the file is opened or only
 * when a block is read, queries have their answers again by themselves, and no engine crashes for ever.
 */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createCipheriv, createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openingStarted } from "../../../src/backup/recovery/quarantine.ts";
import type { EngineStart } from "../../../src/engine/messages.ts";
import { paths } from "../../../src/paths.ts";
import { openPersons } from "../../../src/persons/open.ts";
import { PersonStore } from "../../../src/persons/store.ts";
import { storeRecovery } from "../../../src/serve/engine-recovery.ts";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import { withEventStore } from "./event-file.ts";
import {
  type Filled,
  filledDirectory,
  getAnswers,
  messages,
  overwrite,
  quarantined,
  remove,
  restarted,
  stop,
  toCopy,
} from "./support.ts";

/** DuckDB's three headers, and its blocks behind them. */
const headerBytes = 4_096;
const blocksAt = 3 * headerBytes;
const blockBytes = 262_144;
/** They hold the catalogue, the cursors, and the data of each table; some are free. */
const blocks = 9;

/** With a log beside the file, as a crash leaves it; and with everything in the file. */
let crashed: Filled;
let whole: Filled;
beforeAll(async () => {
  crashed = await filledDirectory();
  whole = toCopy(crashed);
  const server = await restarted(whole);
  await server.eventsWhenStored(whole.answers.events.length);
  await stop(server);
}, 90_000);
afterAll(() => {
  remove(crashed);
  remove(whole);
});

/** The same bytes in every run. */
function garbage(bytes: number, seed: string): Buffer {
  const key = createHash("sha256").update(seed).digest();
  return createCipheriv("aes-256-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(bytes));
}

/** Asks for everything until all is answered as before, whatever the first questions meet. */
async function expectHealed(copy: Filled): Promise<ServerProcess> {
  const server = await ServerProcess.start({ directory: copy.directory });
  const expected = JSON.stringify(copy.answers);
  await until(
    async () => {
      const found = await getAnswers(server).catch(() => undefined);
      return JSON.stringify(found) === expected;
    },
    "everything is answered as before",
    40_000,
  );
  return server;
}

async function heals(original: Filled, harm: (events: string) => void): Promise<void> {
  const copy = toCopy(original);
  harm(join(copy.dataDir, "events.duckdb"));
  await using server = await expectHealed(copy);
  await until(async () => {
    const { stdout } = await flagkeep(["status", "--json", "--data-dir", copy.dataDir]);
    const { engine } = JSON.parse(stdout);
    return engine.up && engine.trouble === null;
  }, "nothing is wrong any more");
  expect(await server.stop()).toBe(0);
  // And it stays so.
  await using again = await expectHealed(copy);
  expect(messages(again).filter((message) => message.includes("rebuilding the event store"))).toEqual([]);
  remove(copy);
}

describe("8 KB of garbage at", () => {
  const places: Record<string, number> = {
    "the first header": 0,
    "the second header": 4_096,
    "the third": 8_192,
  };
  for (let block = 0; block < blocks; block++) {
    places[`the beginning of block ${block}`] = blocksAt + block * blockBytes;
    places[`the middle of block ${block}`] = blocksAt + block * blockBytes + 12_000;
  }
  test("is tried in every block", () => {
    const { size } = statSync(join(whole.dataDir, "events.duckdb"));
    expect((size - blocksAt) / blockBytes).toBeLessThanOrEqual(blocks);
  });
  for (const [name, position] of Object.entries(places)) {
    test(name, () => heals(whole, (events) => overwrite(events, position, garbage(8_192, name))), 60_000);
  }
});

describe("other harm", () => {
  const getSize = (path: string) => statSync(path).size;
  const half = (path: string) => Math.floor(getSize(path) / 2);
  const harms: Record<string, (events: string) => void> = {
    "cut in half": (events) => truncateSync(events, half(events)),
    "cut to nothing": (events) => truncateSync(events, 0),
    "one byte is missing": (events) => truncateSync(events, getSize(events) - 1),
    "zeros from the middle": (events) => overwrite(events, half(events), new Uint8Array(half(events))),
    "zeros behind the headers": (events) =>
      overwrite(events, blocksAt, new Uint8Array(getSize(events) - blocksAt)),
    "all garbage": (events) => writeFileSync(events, garbage(getSize(events), "all")),
    "a text in its place": (events) => writeFileSync(events, "hello\n".repeat(10_000)),
    "a folder in its place": (events) => {
      rmSync(events);
      mkdirSync(join(events, "inner"), { recursive: true });
    },
    "blocks have changed places": (events) => {
      const last = blocksAt + (Math.floor((getSize(events) - blocksAt) / blockBytes) - 1) * blockBytes;
      const [first, other] = [blocksAt, last].map((position) => readAt(events, position));
      overwrite(events, blocksAt, other!);
      overwrite(events, last, first!);
    },
    "single bits": (events) => {
      const random = garbage(40 * 5, "bits");
      for (let bit = 0; bit < 40; bit++) {
        const position = random.readUInt32LE(5 * bit) % getSize(events);
        const byte = readAt(events, position)[0]! ^ (1 << (random[5 * bit + 4]! % 8));
        overwrite(events, position, Uint8Array.of(byte));
      }
    },
  };
  for (const [name, harm] of Object.entries(harms)) test(name, () => heals(whole, harm), 60_000);

  const logHarms: Record<string, (log: string) => void> = {
    "the log is cut in half": (log) => truncateSync(log, half(log)),
    "the log is zeros from the middle": (log) => overwrite(log, half(log), new Uint8Array(half(log))),
    "garbage at the log's beginning": (log) => overwrite(log, 0, garbage(64, "log")),
    "garbage at the log's end": (log) => overwrite(log, getSize(log) - 64, garbage(64, "log")),
    "a folder in the log's place": (log) => {
      rmSync(log);
      mkdirSync(log);
    },
  };
  for (const [name, harm] of Object.entries(logHarms)) {
    test(name, () => heals(crashed, (events) => harm(`${events}.wal`)), 60_000);
  }
  test(
    "both the file and its log",
    () =>
      heals(crashed, (events) => {
        overwrite(events, blocksAt + 600_000, garbage(8_192, "file"));
        overwrite(`${events}.wal`, 5_000, garbage(64, "log"));
      }),
    60_000,
  );
});

test("a missing cursor table is repaired", async () => {
  for (const statement of ["DROP TABLE load_cursor", "DROP TABLE mirror_cursor"]) {
    const copy = toCopy(whole);
    await withEventStore(copy.dataDir, (run) => run(statement));
    await using _ = await expectHealed(copy);
    remove(copy);
  }
}, 60_000);

test("opening that ends the process three times under one node: the file is rebuilt", async () => {
  const copy = toCopy(whole);
  const { dataDir } = copy;
  expect([1, 2, 3].map(() => openingStarted(dataDir, "a-front"))).toEqual([0, 1, 2]);
  const db = openPersons(paths(dataDir).people);
  const spikes = { factor: 10, minimumPerMinute: 1e9, historyMinutes: 60, historyMinutesMin: 2 };
  const nothing = () => undefined;
  const { database } = await storeRecovery.open(
    {
      dataDir,
      server: "a-front",
      memoryLimitBytes: 256 * 1024 * 1024,
      threads: 1,
      spillLimitBytes: 2 ** 30,
    } as EngineStart,
    () => new PersonStore(db, spikes),
    { onStep: nothing, onProgress: nothing, onCorruption: nothing, onIncomplete: nothing },
  );
  database.close();
  db.$client.close();
  await using _ = await expectHealed(copy);
  expect(quarantined(copy.dataDir)).toEqual([
    expect.stringMatching(/^events\.duckdb\.\d+\.broken$/),
  ] as never);
  expect(existsSync(join(copy.dataDir, "events.duckdb.opening"))).toBe(false);
  remove(copy);
}, 60_000);

test("openings interrupted by a stop of the server do not count as corruption", async () => {
  const copy = toCopy(whole);
  for (const _ of [1, 2, 3, 4]) openingStarted(copy.dataDir, "a-front-that-was-killed");
  await using _ = await expectHealed(copy);
  expect(quarantined(copy.dataDir)).toEqual([]);
  expect(existsSync(join(copy.dataDir, "events.duckdb.opening"))).toBe(false);
  remove(copy);
}, 60_000);

test("a file that becomes corrupt repeatedly is reported, not rebuilt forever", async () => {
  const copy = toCopy(whole);
  const folder = join(copy.dataDir, "journal/quarantine");
  mkdirSync(folder, { recursive: true });
  const now = Date.now();
  for (let n = 0; n < 3; n++) writeFileSync(join(folder, `events.duckdb.${now - n}.broken`), "");
  overwrite(join(copy.dataDir, "events.duckdb"), 0, garbage(8_192, "again"));
  await using server = await ServerProcess.start({ directory: copy.directory });
  const status = async () =>
    JSON.parse((await flagkeep(["status", "--json", "--data-dir", copy.dataDir])).stdout).engine;
  await until(async () => (await status()).trouble?.message.includes("rebuilt 3 times"), "it is said");
  const { restarts } = await status();
  await server.capture({ event: "waits", distinct_id: "a" });
  expect((await status()).restarts).toBe(restarts);
  remove(copy);
}, 60_000);

test("the doctor finds corruption that shows only when a block is read, and changes nothing", async () => {
  const copy = toCopy(whole);
  const events = join(copy.dataDir, "events.duckdb");
  expect((await flagkeep(["doctor", "--data-dir", copy.dataDir])).stdout).toContain("can be opened and read");
  let block = -1;
  await withEventStore(copy.dataDir, async (run) => {
    block = Number((await run("SELECT max(block_id) FROM pragma_storage_info('events')"))[0]![0]);
  });
  overwrite(events, blocksAt + block * blockBytes + 12_000, garbage(8_192, "doctor"));
  const before = readAt(events, 0);
  const { code, stdout } = await flagkeep(["doctor", "--data-dir", copy.dataDir]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /The event store cannot be read: .*\n.*The next start, or `flagkeep rebuild`, rebuilds it without loss/,
  );
  expect(readAt(events, 0)).toEqual(before);
  remove(copy);
}, 60_000);

function readAt(path: string, position: number): Uint8Array {
  const bytes = new Uint8Array(blockBytes);
  const file = openSync(path, "r");
  const length = readSync(file, bytes, 0, bytes.length, position);
  closeSync(file);
  return bytes.subarray(0, length);
}
