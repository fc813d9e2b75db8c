/** Corrupt files: what is loaded is exact, and the rest is loaded later. Source: contract, import 1.9. */

import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isBeginningOfJson } from "../../src/import/read/json-text.ts";
import type { ImportSummary } from "../../src/import/summary.ts";
import { flagkeep } from "../support/server.ts";
import { SampleProject } from "./samples.ts";

const lines = Array.from({ length: 3_000 }, (_, n) =>
  JSON.stringify({
    event: "e",
    distinct_id: `u${n}`,
    timestamp: 1.7e9 + n,
    properties: { n: Bun.hash(`${n}`).toString() },
  }),
);
const content = Buffer.from(`${lines.join("\n")}\n`);

async function load(project: SampleProject, name: string, bytes: Uint8Array, ...args: string[]) {
  const path = join(project.folder, name);
  writeFileSync(path, bytes);
  const given = ["import", path, "--json", "--data-dir", project.dataDir, ...args];
  const { stdout, stderr, code } = await flagkeep(given);
  return { code, stderr, summary: stdout === "" ? undefined : (JSON.parse(stdout) as ImportSummary) };
}

test("the beginning of JSON, cut anywhere, and text that is not JSON", () => {
  const value = { event: 'a"b\\\\é\u0001', n: -1.5e10, list: [1, [true, null], { x: "y" }], o: {}, z: false };
  const whole = JSON.stringify(value);
  for (let end = 1; end < whole.length; end++) {
    const start = whole.slice(0, end);
    expect([start, isBeginningOfJson(start)]).toEqual([start, true]);
  }
  for (const text of [
    whole,
    "{broken",
    "bad",
    "",
    "[1",
    '{"a":}',
    '{"a" "b"',
    '{"a":1}}',
    "{'a':1",
    '{"a":1,,',
  ])
    expect([text, isBeginningOfJson(text)]).toEqual([text, false]);
});

test("lines truncated within a record continue with --resume; an invalid last line is rejected", async () => {
  const project = await SampleProject.create();
  const cut = await load(project, "a.ndjson", content.subarray(0, content.length - 20));
  expect(cut).toMatchObject({ code: 1, summary: { accepted: 2_999, complete: false } });
  expect(cut.stderr).toContain("is cut off: line 3000 has no end. Everything before");
  expect(cut.stderr).toContain("imported (2999 events)");
  expect(cut.stderr).toContain("--resume");
  expect(await load(project, "a.ndjson", content, "--resume")).toMatchObject({
    code: 0,
    stderr: "",
    summary: { read: 3_000, accepted: 3_000, rejected: 0, complete: true },
  });
  const invalid = Buffer.from(`${lines[0]}\n{broken`);
  expect(await load(project, "b.ndjson", invalid)).toMatchObject({ code: 0, summary: { rejected: 1 } });
}, 60_000);

describe("files that are cut off continue with --resume", () => {
  const records = Array.from({ length: 30 }, (_, n) => ({
    event: "e",
    distinct_id: `u${n}`,
    timestamp: 1.7e9 + n,
    properties: { text: `é ${n}\nsecond, "line"` },
  }));
  const csv = records.map(({ properties, ...rest }) => {
    const text = properties.text.replaceAll('"', '""');
    return `${Object.values(rest).join()},"${text}",end`;
  });
  const table = `event,distinct_id,timestamp,text,last\n${csv.join("\n")}\n`;
  const snowplow = records.map(({ distinct_id }, n) => {
    const cells: string[] = Array(131).fill("");
    cells[3] = `2024-05-01 10:00:${10 + n}.000`;
    cells[5] = "page_view";
    cells[6] = `11111111-1111-4111-8111-1111111111${10 + n}`;
    cells[15] = distinct_id;
    return cells.join("\t");
  });
  const list = JSON.stringify(records);
  const jsonLines = records.map((record) => JSON.stringify(record)).join("\n");
  for (const [name, whole, cut] of [
    ["a row with too few cells", table, table.length - 4],
    ["a row that ends in the second line of a quoted cell", table, table.length - 10],
    ["a row that ends in the first line of a quoted cell", table, Buffer.from(table).lastIndexOf("é")],
    ["a row that ends behind a line of a quoted cell", table, Buffer.from(table).lastIndexOf("second")],
    ["a row without a header", `${snowplow.join("\n")}\n`, -20],
    ["a line that ends inside of a character", jsonLines, Buffer.from(jsonLines).lastIndexOf("é") + 1],
    ["a list that ends inside of a record", list, -30],
    ["a list that ends behind a record", list, -1],
  ] as const)
    test(name, async () => {
      const project = await SampleProject.create();
      const start = Buffer.from(whole).subarray(0, cut);
      const loaded = name.endsWith("behind a record") ? 30 : 29;
      const counts = { accepted: loaded, rejected: 1, complete: false };
      const first = await load(project, "a", start);
      expect(first).toMatchObject({ code: 1, summary: counts });
      expect(first.stderr).toContain("is cut off");
      const rest = await load(project, "a", Buffer.from(whole), "--resume");
      const all = { read: 30, accepted: 30, rejected: 0, complete: true };
      expect(rest).toMatchObject({ code: 0, stderr: "", summary: all });
    }, 60_000);

  test("a quote that is never closed costs its row if another row follows", async () => {
    const project = await SampleProject.create();
    const broken = `event,distinct_id,timestamp,text\ne,u,1700000001,"open\ne,v,1700000002,x`;
    expect(await load(project, "a.csv", Buffer.from(broken))).toMatchObject({
      code: 0,
      summary: { accepted: 1, rejected: 1 },
    });
  }, 60_000);
});

test("nothing is loaded of a packed file with a wrong checksum", async () => {
  const project = await SampleProject.create();
  const packed = Buffer.from(Bun.gzipSync(content));
  packed[packed.length - 6]! ^= 1;
  const broken = await load(project, "a.gz", packed);
  expect(broken).toMatchObject({ code: 1, summary: undefined });
  expect(broken.stderr).toContain("Nothing of it was imported.");
  expect(await project.persons()).toEqual([]);
}, 60_000);

test("a corrupt member of an archive does not keep the others; a short one is noticed", async () => {
  const project = await SampleProject.create();
  const folder = join(project.folder, "files");
  mkdirSync(folder);
  writeFileSync(join(folder, "a.ndjson"), content);
  writeFileSync(join(folder, "b.ndjson"), content.toString().replaceAll('"u', '"v'));
  const run = (...args: string[]) => expect(Bun.spawnSync(args, { cwd: folder }).exitCode).toBe(0);
  run("tar", "cf", "../all.tar", "a.ndjson", "b.ndjson");
  const tar = Buffer.from(await Bun.file(join(project.folder, "all.tar")).bytes());
  const short = await load(project, "short.tar", tar.subarray(0, content.length + 100_000), "--dry-run");
  expect(short).toMatchObject({ code: 1, summary: { complete: false } });
  expect(short.stderr).toContain("short.tar/b.ndjson is cut off");
  expect(short.stderr).toContain("checked (");

  const stored = getZip({
    "a.ndjson": content,
    "b.ndjson": await Bun.file(join(folder, "b.ndjson")).bytes(),
  });
  // A digit of the first member.
  stored[stored.indexOf('"u7"') + 2] = 0x38;
  const corrupt = await load(project, "all.zip", stored);
  expect(corrupt).toMatchObject({ code: 1, summary: { accepted: 3_000, rejected: 0 } });
  expect(corrupt.stderr).toContain(
    "all.zip/a.ndjson is corrupt (wrong checksum). Nothing of it was imported.",
  );
}, 60_000);

/** A zip archive without compression. */
function getZip(files: Record<string, Uint8Array>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, bytes] of Object.entries(files)) {
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(Bun.hash.crc32(bytes), 10);
    common.writeUInt32LE(bytes.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const entry = Buffer.alloc(16);
    entry.writeUInt32LE(at, 12);
    directory.push(Buffer.from("PK\x01\x02\x14\x00", "latin1"), common, entry.subarray(2), Buffer.from(name));
    const local = [Buffer.from("PK\x03\x04", "latin1"), common, Buffer.from(name), Buffer.from(bytes)];
    parts.push(...local);
    at += local.reduce((sum, { length }) => sum + length, 0);
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(Object.keys(files).length, 8);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(list.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, list, end]);
}
