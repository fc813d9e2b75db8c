/** Malformed input: it costs its own records, with their lines, and everything else is read. */

import { afterAll, describe, expect, test } from "bun:test";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { importFiles } from "../../src/import/files.ts";
import { getContents } from "../../src/import/read/archive-contents.ts";
import { CorruptInputError, UnreadableFileError } from "../../src/import/read/input.ts";
import { recordSource } from "../../src/import/read/read-records.ts";
import type { ReadRecord } from "../../src/import/read/record.ts";
import { temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function getFile(content: string | Uint8Array): string {
  files += 1;
  const path = join(folder, `file-${files}`);
  writeFileSync(path, content);
  return path;
}

async function read(
  path: string,
  format: "ndjson" | "csv" | "parquet",
): Promise<{ records: ReadRecord[]; error?: Error }> {
  const records: ReadRecord[] = [];
  try {
    const options = { onBytes: () => {}, workFolder: folder };
    for await (const content of getContents(path, options)) {
      const source = recordSource(content, format === "ndjson" ? undefined : format, options);
      for await (const some of source.records) records.push(...some);
    }
    return { records };
  } catch (error) {
    return { records, error: error as Error };
  }
}

/** `[line, problem or the record's member "a"]` */
const brief = ({ line, record, problem }: ReadRecord) => [line, problem ?? record!.a];

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

describe("CSV", () => {
  for (const { name, content, expected } of [
    {
      name: "plain",
      content: "a,b\n1,2\n3,4\n",
      expected: [
        [2, "1"],
        [3, "3"],
      ],
    },
    { name: "no line end at the end", content: "a,b\n1,2", expected: [[2, "1"]] },
    {
      name: "line ends of Windows and a byte order mark",
      content: '\uFEFFa,b\r\n1,"x"\r\n3,4\r\n',
      expected: [
        [2, "1"],
        [3, "3"],
      ],
    },
    {
      name: "line ends of both kinds, the header's another one",
      content: 'b,a\r\n1,2\n3,"4"\n5,"6\r\n7"\r\n8,9',
      expected: [
        [2, "2"],
        [3, "4"],
        [4, "6\r\n7"],
        [6, "9"],
      ],
    },
    {
      name: "line ends of Windows below a header without them",
      content: 'b,a\n1,2\r\n3,"4"\r\n5,\r\n"6,7\r\n',
      expected: [
        [2, "2"],
        [3, "4"],
        [4, undefined],
        [5, "broken_quotes"],
      ],
    },
    {
      name: "line ends of old Macs",
      content: 'b,a\r1,"2\n3"\r4,5\r',
      expected: [
        [2, "2\n3"],
        [3, "5"],
      ],
    },
    {
      name: "semicolons",
      content: "a;b\n1;2,5\n3;4\n",
      expected: [
        [2, "1"],
        [3, "3"],
      ],
    },
    {
      name: "quotes, delimiters and line breaks inside",
      content: 'a,b\n"x ""y"", z","p\nq"\n3,4\n',
      expected: [
        [2, 'x "y", z'],
        [4, "3"],
      ],
    },
    {
      name: "blank lines",
      content: "a,b\n\n1,2\n\n3,4\n\n",
      expected: [
        [3, "1"],
        [5, "3"],
      ],
    },
    {
      name: "too few and too many columns",
      content: "a,b\n1\n2,2,2\n3,4\n",
      expected: [
        [2, "wrong_column_count"],
        [3, "wrong_column_count"],
        [4, "3"],
      ],
    },
    {
      name: "a quote that is never closed",
      content: 'a,b\n1,2\n2,"open\n3,4\n5,6\n',
      expected: [
        [2, "1"],
        [3, "broken_quotes"],
        [4, "3"],
        [5, "5"],
      ],
    },
    {
      name: "a quote that is never closed before quotes that are",
      content: 'a,b\n2,"open\n3,"x, y"\n5,6\n',
      expected: [
        [2, "broken_quotes"],
        [3, "3"],
        [4, "5"],
      ],
    },
    {
      name: "text behind a closing quote",
      content: 'a,b\n"2"x,1\n3,4\n',
      expected: [
        [2, "broken_quotes"],
        [3, "3"],
      ],
    },
    {
      name: "a quote inside of a plain cell",
      content: 'a,b\n5" pipe,1\n3,4\n',
      expected: [
        [2, '5" pipe'],
        [3, "3"],
      ],
    },
    {
      name: "bytes that are no UTF-8",
      content: bytes("a,b\n1,2\nx", [0xff, 0xfe], ",2\n3,\uFFFD\n"),
      expected: [
        [2, "1"],
        [3, "not_utf8"],
        [4, "3"],
      ],
    },
    {
      name: "empty cells are no values",
      content: "a,b\n,2\n3,\n",
      expected: [
        [2, undefined],
        [3, "3"],
      ],
    },
  ] as { name: string; content: string | Uint8Array; expected: unknown[] }[])
    test(name, async () => {
      const { records, error } = await read(getFile(content), "csv");
      expect({ records: records.map(brief), error }).toEqual({
        records: expected as never,
        error: undefined,
      });
    });

  test("many broken rows in a long file, around the ends of blocks", async () => {
    const rows = 120_000;
    const lines = Array.from({ length: rows }, (_, n) =>
      n % 10_007 === 3
        ? `${n},"never closed`
        : n % 9_001 === 4
          ? `${n}`
          : `${n},"some text, ${"y".repeat(n % 50)}\nsecond line"`,
    );
    const { records } = await read(getFile(`a,b\n${lines.join("\n")}\n`), "csv");
    const problems = records.filter(({ problem }) => problem !== undefined);
    expect(problems.filter(({ problem }) => problem === "broken_quotes")).toHaveLength(12);
    expect(problems.filter(({ problem }) => problem === "wrong_column_count")).toHaveLength(14);
    expect(records).toHaveLength(rows);
    const last = records.at(-1)!;
    expect(last.record!.a).toBe(String(rows - 1));
    // Every whole row takes two lines.
    expect(last.line).toBe(2 * rows - problems.length);
  });

  test("a header that names a column twice or not at all", async () => {
    for (const content of ["a,a\n1,2\n", "a,\n1,2\n"]) {
      const { records, error } = await read(getFile(content), "csv");
      expect(records).toEqual([]);
      expect(error).toBeInstanceOf(UnreadableFileError);
    }
  });
});

test("every character is read, insignificant ones too, next to lines of invalid UTF-8", async () => {
  const strange = "\uFDD0\uFDD1\uFFFE\uFFFF\u{10000}\u{1FFFE}\u{10FFFF}\u{103FF}\u{10000}";
  const broken = [0xff, 0x0a];
  const lines = bytes(`${JSON.stringify({ a: strange })}\n`, broken, `${JSON.stringify({ a: strange })}\n`);
  const csv = bytes(`a,b\n${strange},1\n`, "x,", broken, `${strange},2\n`);
  expect((await read(getFile(lines), "ndjson")).records.map(brief)).toEqual([
    [1, strange],
    [2, "not_utf8"],
    [3, strange],
  ]);
  expect((await read(getFile(csv), "csv")).records.map(brief)).toEqual([
    [2, strange],
    [3, "not_utf8"],
    [4, strange],
  ]);
});

describe("NDJSON", () => {
  test("lines that are no JSON, no objects, no UTF-8 or too long", async () => {
    const long = `{"a":"${"x".repeat(64 * 1024 * 1024)}"}`;
    const content = bytes(
      '{"a":1}\nnope\n[1]\n\n{"a":"',
      [0xc3, 0x28],
      `"}\n${long}\n{"a":"ü\uFFFD"}\r\n{"a":2}`,
    );
    const { records, error } = await read(getFile(content), "ndjson");
    expect(error).toBeUndefined();
    expect(records.map(brief)).toEqual([
      [1, 1],
      [2, "not_json"],
      [3, "not_an_object"],
      [5, "not_utf8"],
      [6, "line_too_long"],
      [7, "ü\uFFFD"],
      [8, 2],
    ] as never);
    expect(records[1]!.text).toBe("nope");
  });
});

test("a line or record without an end ends the file", async () => {
  const chunk = Buffer.alloc(8 * 1024 * 1024, "x");
  const endless = async function* (start: string) {
    yield Buffer.from(start);
    for (;;) yield chunk;
  };
  const first = { event: "e", distinct_id: "u", a: 1 };
  for (const [kind, start] of [
    ["lines", `${JSON.stringify(first)}\n`],
    ["CSV", "event,distinct_id,a\ne,u,1\n"],
    ["list", `[${JSON.stringify(first)},{"a":"`],
  ] as const) {
    const head = Buffer.from(start);
    const content = {
      name: "a",
      inside: "",
      archive: undefined,
      path: undefined,
      packing: [],
      head,
      bytes: endless(start),
      close: async () => undefined,
    };
    const records: ReadRecord[] = [];
    const read = async () => {
      const source = recordSource(content, undefined, { onBytes: () => {}, workFolder: folder });
      for await (const some of source.records) records.push(...some);
    };
    const error = await read().catch((error) => error);
    expect([kind, error]).toEqual([kind, expect.any(CorruptInputError)]);
    expect(error.message).toBe("A line or record is longer than 1 GiB, which is the limit.");
    expect(Number(records[0]!.record!.a)).toBe(1);
  }
}, 60_000);

test("a record as long as it may be: a line, and a cell", async () => {
  const long = 'é"'.repeat(20 * 1024 * 1024).slice(0, 31 * 1024 * 1024);
  const json = await read(getFile(`${JSON.stringify({ a: long })}\n{"a":2}\n`), "ndjson");
  expect(json.records.map(({ record }) => record!.a === long || record!.a)).toEqual([true, 2]);
  const csv = await read(getFile(`a,b\n"${long.replaceAll('"', '""')}",1\n2,2\n`), "csv");
  expect(csv.records.map(({ record }) => record!.a === long || record!.a)).toEqual([true, "2"]);
}, 60_000);

test("nested brackets cost their own record, in every shape", async () => {
  const deep = (open: string, close: string) => open.repeat(200_000) + close.repeat(200_000);
  const lines = [deep("[", "]"), deep('{"a":', "}").replace("}", "1}"), `{"a":${deep("[", "]")}}`, '{"a":1}'];
  const { records, error } = await read(getFile(`${lines.join("\n")}\n${"[".repeat(1e6)}\n`), "ndjson");
  expect(error).toBeUndefined();
  expect(records.map(brief)).toEqual([
    ...[1, 2, 3].map((line) => [line, "nested_too_deep"]),
    [4, 1],
    [5, "not_json"],
  ] as never);
});

test("numbers are returned as written", async () => {
  const texts = [
    "12345678901234567890",
    "0.12345678901234567890",
    "1e400",
    "-9007199254740993",
    "1704164645",
  ];
  const { records } = await read(getFile(texts.map((text) => `{"a":${text}}`).join("\n")), "ndjson");
  expect(records.map(({ record }) => JSON.stringify(record))).toEqual(texts.map((text) => `{"a":${text}}`));
});

describe("packed files", () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `{"a":${n},"text":"${Bun.hash(String(n))}"}\n`).join(
    "",
  );
  const packers = {
    gzip: (text: string) => Bun.gzipSync(Buffer.from(text)),
    zstd: (text: string) => Bun.zstdCompressSync(Buffer.from(text)),
  };
  for (const [name, pack] of Object.entries(packers)) {
    const whole = Buffer.from(pack(lines));
    test(`${name}: whole, and in two parts`, async () => {
      expect((await read(getFile(whole), "ndjson")).records.at(-1)).toMatchObject({ line: 20_000 });
      const two = await read(getFile(Buffer.concat([whole, pack('{"a":"more"}\n')])), "ndjson");
      expect(two.records.map(brief).at(-1)).toEqual([20_001, "more"]);
    });
    for (const [corruption, content] of [
      ["cut off", whole.subarray(0, Math.floor(whole.length * 0.9))],
      ["with other bytes behind it", Buffer.concat([whole, Buffer.from("no frame at all")])],
    ] as const)
      test(`${name}: ${corruption}`, async () => {
        const { records, error } = await read(getFile(content), "ndjson");
        expect(error).toBeInstanceOf(CorruptInputError);
        expect(records.length).toBeGreaterThan(10_000);
        const good = records.filter(({ problem }) => problem === undefined);
        expect(good.map(({ record }) => record!.a)).toEqual(good.map((_, n) => n));
      });
  }
});

describe("Parquet", () => {
  test("not at all, cut off, and values that are no JSON", async () => {
    const { DuckDBInstance } = await import("@duckdb/node-api");
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();
    const path = getFile("");
    await connection.run(
      `COPY (SELECT CASE n WHEN 1 THEN 'infinity'::DOUBLE WHEN 2 THEN NULL ELSE n END AS a, TIMESTAMPTZ '2024-01-02 03:04:05+01' AS t
        FROM range(4) r(n)) TO '${path}' (FORMAT parquet)`,
    );
    connection.closeSync();
    instance.closeSync();
    const { records, error } = await read(path, "parquet");
    expect(error).toBeUndefined();
    expect(records.map(brief)).toEqual([
      [1, 0],
      [2, "not_json"],
      [3, null],
      [4, 3],
    ] as never);
    expect(records[0]!.record!.t).toBe("2024-01-02 02:04:05+00");
    const content = await Bun.file(path).bytes();
    for (const broken of [content.subarray(0, content.length - 20), Buffer.from("a,b\n")])
      expect((await read(getFile(broken), "parquet")).error).toBeInstanceOf(UnreadableFileError);
  });
});

test("Parquet that is corrupt far after its beginning is not mistaken for its end", async () => {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  const path = getFile("");
  const rows = 600_000;
  await connection.run(
    `COPY (SELECT range AS n, md5(range::VARCHAR) AS text FROM range(${rows})) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 20000)`,
  );
  connection.closeSync();
  instance.closeSync();
  const content = Buffer.from(await Bun.file(path).bytes());
  content.fill(0xff, Math.floor(content.length * 0.9), Math.floor(content.length * 0.9) + 2_000);
  const { records, error } = await read(getFile(content), "parquet");
  expect(error).toBeInstanceOf(CorruptInputError);
  expect(records.length).toBeGreaterThan(0);
  expect(records.length).toBeLessThan(rows);
}, 60_000);

test("a folder's files by name, as people count; hidden files, reject files and links left out", () => {
  const root = join(folder, "tree");
  for (const name of ["part-10", "part-2", "b/part-1", ".hidden", ".git/x", "part-2.rejected.ndjson"])
    Bun.spawnSync(["install", "-D", "/dev/null", join(root, name)]);
  for (const [name, target] of [
    ["loop", "."],
    ["b/up", ".."],
    ["etc", "/etc"],
    ["link", "part-2"],
    ["nowhere", "gone"],
  ] as const)
    symlinkSync(target, join(root, name));
  const { paths, totalBytes } = importFiles(root);
  expect(paths.map((path) => path.slice(root.length + 1))).toEqual(["b/part-1", "part-2", "part-10"]);
  expect(totalBytes).toBe(0);
});
