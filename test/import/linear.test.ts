/** Readers of an import take time in proportion to their input, whatever is wrong with it. Source: contract, import 1.10. */

import { afterAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zipSync } from "fflate";
import { packTar } from "modern-tar";
import { importAll } from "../../src/import/import-all.ts";
import { getContents } from "../../src/import/read/archive-contents.ts";
import { columnsMax } from "../../src/import/read/csv-rows.ts";
import { CorruptInputError, UnreadableFileError } from "../../src/import/read/input.ts";
import { recordSource } from "../../src/import/read/read-records.ts";
import { temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

async function read(content: string | Uint8Array) {
  const path = join(folder, "file");
  writeFileSync(path, content);
  const options = { onBytes: () => {}, workFolder: folder };
  const before = process.cpuUsage();
  const lines = [] as number[];
  const problems = new Map<string, number>();
  try {
    for await (const one of getContents(path, options))
      for await (const records of recordSource(one, undefined, options).records)
        for (const { line, problem } of records) {
          lines.push(line);
          if (problem !== undefined) problems.set(problem, (problems.get(problem) ?? 0) + 1);
        }
  } catch (error) {
    if (!(error instanceof CorruptInputError)) throw error;
  }
  const { user, system } = process.cpuUsage(before);
  return { records: lines.length, problems, ms: (user + system) / 1_000 };
}

const repeated =
  (head: string, row: string, behind = "") =>
  (n: number) =>
    head + row.repeat(n) + behind;
/** Each would take minutes where a broken row makes the reader look at the rest of the file. */
const inputs: Record<string, (n: number) => string> = {
  "CSV, plain": repeated("a,b,c\n", "1,some text,3\n"),
  "CSV, in quotes": repeated("a,b,c\n", '1,"some, ""text""",3\n'),
  "CSV, cells over two lines": repeated("a,b\n", '1,"\n'),
  "CSV, quotes never closed": repeated("a,b\n", '1,"open\n'),
  "CSV, text behind quotes": repeated("a,b\n", '1,"x"y\n'),
  "CSV, pairs that close nothing": repeated("a,b\n", '1,"a""\n'),
  "CSV, three quotes": repeated("a,b\n", '"""x,1\n'),
  "CSV, broken and whole rows by turns": repeated("a,b\n", '1,"open\n2,fine\n'),
  "CSV, one quote before all": repeated('a,b\n1,"open\n', "2,fine\n"),
  "CSV, one column with quotes inside": repeated("a\n", '5" pipe\n'),
  "CSV, quotes and no delimiter": repeated("a,b\n", '5" pipe\n'),
  "CSV, line ends of old Macs": repeated("a,b\r", "1,2\r"),
  "tabs, escapes": repeated("a\tb\n", "x\\ty\t\\N\n"),
  "tabs, escaped line breaks": repeated("a\tb\n", "1\\\n"),
  "tabs, one quote in each row": repeated("a\tb\n", '"open\t1\n'),
  "tabs, backslashes": repeated("a\tb\n1\t", "\\"),
  "CSV, backslashes before quotes": repeated('a,b\n"say \\"x",1\n', '1,"\\"\n'),
  "CSV, backslashes before delimiters": repeated("a,b\n", "1\\,2,3\n"),
  "lines of JSON": repeated("", '{"event":"e","distinct_id":"a"}\n'),
  "lines that are cut off": repeated("{}\n", '{"event":"e\n'),
  "a list": repeated("[{}", ',{"event":"e"}', "]"),
  "a list of values": repeated("[{}", ",1", "]"),
  "a list with escapes": repeated('[{"a":"', '\\"', '"}]'),
  "a list that is never closed": repeated("[{},", "["),
  "a member with the list": repeated('{"results":[{}', ',{"event":"e"}', "]}"),
  "members behind the list": repeated('{"results":[{}]', ',"k":[1]', "}"),
};

describe("ten times the input takes at most twelve times the time", () => {
  const count = 10_000;
  const ratioMax = 12 * 1.5;
  const roundsMin = 3;
  const roundsMax = 12;
  for (const [name, make] of Object.entries(inputs))
    test(name, async () => {
      await read(make(count / 10));
      // Other processes slow down some rounds, also in processor time; what is not linear is slow in each. Of each at least
      // what the clock of the processor can tell.
      const least = { few: Number.POSITIVE_INFINITY, many: Number.POSITIVE_INFINITY };
      for (let round = 1; round <= roundsMax; round++) {
        least.few = Math.min(least.few, Math.max(4, (await read(make(count))).ms));
        least.many = Math.min(least.many, (await read(make(10 * count))).ms);
        if (round >= roundsMin && least.many / least.few < ratioMax) break;
      }
      expect(least.many / least.few).toBeLessThan(ratioMax);
    }, 60_000);
});

test("200,000 rows with broken quotes are rejected one by one", async () => {
  const { records, problems, ms } = await read(`a,b\n${'1,"open\n'.repeat(200_000)}`);
  expect({ records, problems: [...problems] }).toEqual({
    records: 200_000,
    problems: [["broken_quotes", 200_000]],
  });
  expect(ms).toBeLessThan(10_000);
});

describe("columns", () => {
  const table = (columns: number) => {
    const names = Array.from({ length: columns }, (_, n) => `c${n}`);
    return `${names.join()}\n${names.map((_, n) => n).join()}\n`;
  };
  test(`${columnsMax} are read`, async () => {
    expect(await read(table(columnsMax))).toMatchObject({ records: 1, problems: new Map() });
  });
  for (const columns of [columnsMax + 1, 100_000])
    test(`${columns} are rejected by one sentence`, async () => {
      const error = await read(table(columns)).catch((error) => error);
      expect(error).toBeInstanceOf(UnreadableFileError);
      expect(error.message).toBe(
        "The first line of the file names more than 10,000 columns, which is the limit.",
      );
    });
  test("a row with more cells than columns may be has the wrong number, also in quotes", async () => {
    const long = (cell: string) =>
      Array(3 * columnsMax)
        .fill(cell)
        .join();
    const { records, problems } = await read(`${table(columnsMax)}${long("1")}\n${long('"1"')}\n`);
    expect({ records, problems: [...problems] }).toEqual({
      records: 3,
      problems: [["wrong_column_count", 2]],
    });
  });
});

describe("archives", () => {
  const event = (n: number) => JSON.stringify({ event: "e", distinct_id: `u${n}`, timestamp: 1.7e9 + n });
  const members = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`file-${n}`, Buffer.from(event(n))]));
  /** A store that takes its time for every question and every batch. */
  const slowTarget = () => {
    const seen = { questions: 0, batches: 0, sent: [] as string[] };
    const target = {
      knownUuids: async () => {
        seen.questions += 1;
        await Bun.sleep(60);
        return new Set<string>();
      },
      send: async (requests: Uint8Array) => {
        seen.batches += 1;
        const lines = Buffer.from(requests).toString().trimEnd().split("\n");
        await Bun.sleep(60);
        for (const line of lines)
          for (const { distinct_id } of JSON.parse(line).batch) seen.sent.push(distinct_id);
      },
      limits: async () => ({ eventBytesMax: 20 * 1024 * 1024 }),
      hasHistory: async () => true,
      storedEvents: async () => [],
      personsOf: async () => new Map(),
      importedPersons: async () => [],
      deletePerson: async () => undefined,
      settled: async () => undefined,
      lastSeq: async () => 0,
      waitUntilLoaded: async () => undefined,
    };
    return { seen, target };
  };
  const load = async (content: Uint8Array) => {
    const source = join(folder, "archive");
    const state = temporaryFolder();
    writeFileSync(source, content);
    const { seen, target } = slowTarget();
    const nothing = () => undefined;
    const imported = await importAll({
      source,
      projectId: 1,
      dataDir: state,
      stateFolder: state,
      format: "auto",
      fields: [],
      isLinking: true,
      isDryRun: false,
      isResumed: false,
      maxRejects: 10,
      target,
      onBytes: nothing,
      onRecords: nothing,
      onReject: nothing,
      onFormat: nothing,
    });
    imported.forget();
    rmSync(state, { recursive: true });
    return { imported, seen };
  };

  test("lookups and batches of many small files are combined, in their order", async () => {
    const count = 3_000;
    const { imported, seen } = await load(zipSync(members(count), { level: 0 }));
    expect(imported.counts).toMatchObject({ read: count, accepted: count });
    expect(seen.sent).toEqual(Array.from({ length: count }, (_, n) => `u${n}`));
    expect(seen.questions).toBeLessThan(count / 5);
    expect(seen.batches).toBeLessThan(count / 5);
  }, 60_000);

  for (const [name, pack] of [
    ["zip", async (count: number) => zipSync(members(count), { level: 0 })],
    [
      "tar",
      async (count: number) =>
        await packTar(
          Object.entries(members(count)).map(([name, body]) => ({
            header: { name, size: body.length },
            body,
          })),
        ),
    ],
  ] as const)
    test(`60,000 names in a ${name}`, async () => {
      const before = performance.now();
      const { records } = await read(await pack(60_000));
      expect(records).toBe(60_000);
      expect(performance.now() - before).toBeLessThan(60_000);
    }, 120_000);

  test("members that overlap are rejected by one sentence, before any is unpacked", async () => {
    const one = Buffer.from(zipSync({ a: new Uint8Array(10_000_000) }));
    const directory = one.indexOf(Buffer.from("PK\x01\x02", "latin1"));
    const entry = one.subarray(directory, one.indexOf(Buffer.from("PK\x05\x06", "latin1")));
    const end = Buffer.from(one.subarray(directory + entry.length));
    const count = 60_000;
    end.writeUInt16LE(count, 8);
    end.writeUInt16LE(count, 10);
    end.writeUInt32LE(count * entry.length, 12);
    const bomb = Buffer.concat([one.subarray(0, directory), ...Array(count).fill(entry), end]);
    const error = await read(bomb).catch((error) => error);
    expect(error).toBeInstanceOf(UnreadableFileError);
    expect(error.message).toMatch(/^\S+ is a zip archive whose members overlap\.$/);
  });
});
