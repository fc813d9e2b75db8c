/** Files as products hand them out, through the executable: archives, packed files, lists; identities; exact counts. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { zipSync } from "fflate";
import { packTar } from "modern-tar";
import type { ImportSummary } from "../../src/import/summary.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string | Uint8Array) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const utf8 = (text: string) => new Uint8Array(Buffer.from(text));
const event = (n: number, more: object = {}) => ({
  event: `e${n}`,
  distinct_id: `u${n}`,
  timestamp: 1.7e9 + n,
  ...more,
});
const lines = (...ns: number[]) => ns.map((n) => JSON.stringify(event(n))).join("\n");

async function load(dataDir: string, path: string, ...args: string[]) {
  const { stdout, stderr, code } = await flagkeep(["import", path, "--json", "--data-dir", dataDir, ...args]);
  expect(stderr).not.toContain("    at ");
  return { summary: (stdout === "" ? {} : JSON.parse(stdout)) as ImportSummary, stderr, code };
}

async function rows(dataDir: string, sql: string): Promise<Record<string, unknown>[]> {
  const { stdout, stderr } = await flagkeep(["query", sql, "--json", "--data-dir", dataDir]);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout).rows;
}

const names = async (dataDir: string) =>
  (await rows(dataDir, "SELECT event FROM events ORDER BY seq")).map((row) => row.event);

const tar = (entries: Record<string, Uint8Array>) =>
  packTar(Object.entries(entries).map(([name, body]) => ({ header: { name, size: body.length }, body })));

test("archives, lists and packed files are detected by content, whatever their name", async () => {
  const inside = {
    "part-10.json": utf8(lines(3)),
    "part-2.json.gz": Bun.gzipSync(utf8(lines(1, 2))),
    "sub/part-1.csv": utf8("event,distinct_id,timestamp\ne4,u4,2024-01-02\n"),
    "__MACOSX/part-2.json": utf8("junk"),
    ".DS_Store": utf8("junk"),
  };
  const list = [1, 2, 3, 4].map((n) => event(n));
  const posthog = { count: 4, next: null, previous: null, results: list };
  for (const [name, content, order, format] of [
    ["a", zipSync(inside), [1, 2, 3, 4], "zip"],
    ["b", await tar(inside), [3, 1, 2, 4], "tar"],
    ["c", Bun.gzipSync(await tar(inside)), [3, 1, 2, 4], "gzip, tar"],
    ["d", Bun.zstdCompressSync(zipSync(inside)), [1, 2, 3, 4], "zip"],
    ["e", utf8(JSON.stringify(list)), [1, 2, 3, 4], "events, JSON"],
    ["f", utf8(`\uFEFF${JSON.stringify(list, null, 2)}\n`), [1, 2, 3, 4], "events, JSON"],
    ["g", utf8(JSON.stringify(posthog)), [1, 2, 3, 4], "events, JSON"],
    ["h", Bun.gzipSync(utf8(JSON.stringify(posthog, null, 1))), [1, 2, 3, 4], "events, JSON, gzip"],
    ["i", utf8(JSON.stringify({ api_key: "k", batch: list })), [1, 2, 3, 4], "events, JSON"],
    ["j", utf8(list.map((each) => JSON.stringify(each, null, 2)).join("\n")), [1, 2, 3, 4], "events, JSON"],
    ["k", Bun.zstdCompressSync(utf8(lines(1, 2, 3, 4))), [1, 2, 3, 4], "events, JSON lines, zstd"],
  ] as [string, Uint8Array, number[], string][]) {
    const { dataDir } = await initializedDirectory();
    const { summary, code, stderr } = await load(dataDir, file(name, content));
    expect({ name, code, stderr }).toMatchObject({ name, code: 0 });
    expect(summary).toMatchObject({ read: 4, accepted: 4, rejected: 0, complete: true });
    expect(summary.formats.join()).toContain(format);
    expect(await names(dataDir)).toEqual(order.map((n) => `e${n}`));
    expect((await load(dataDir, join(folder, name))).summary).toMatchObject({ accepted: 0, duplicate: 4 });
    expect(readdirSync(join(dataDir, "import-state"))).toEqual([]);
  }
}, 300_000);

test("files unpacked by a killed import are removed by the next one that unpacks; those of a running one stay", async () => {
  const { dataDir } = await initializedDirectory();
  const state = join(dataDir, "import-state");
  mkdirSync(state);
  const running = `unpacked-${process.pid}-x`;
  // No process has such a number.
  for (const name of ["unpacked-4194305-x", running]) writeFileSync(join(state, name), "some bytes");
  const { code } = await load(
    dataDir,
    file("packed", Bun.zstdCompressSync(zipSync({ "a.json": utf8(lines(1)) }))),
  );
  expect(code).toBe(0);
  expect(readdirSync(state)).toEqual([running]);
}, 60_000);

test("the first line names the file's format", async () => {
  const { dataDir } = await initializedDirectory();
  const amplitude = JSON.stringify({ event_type: "a", user_id: "u", event_time: "2024-01-02 03:04:05" });
  const path = file("amp.zip", zipSync({ "x.json.gz": Bun.gzipSync(utf8(amplitude)) }));
  const { stdout } = await flagkeep(["import", path, "--data-dir", dataDir]);
  expect(stdout.split("\n")[0]).toBe("Reading Amplitude's export, JSON lines, gzip, zip.");
});

test("useless members of an archive or a folder are skipped and reported", async () => {
  const { dataDir } = await initializedDirectory();
  const bad = utf8(`${lines(2)}\nbroken`);
  const path = file(
    "mixed.zip",
    zipSync({ "a.json": utf8(lines(1)), "b/c d.json": bad, "z.json": utf8(lines(3)) }),
  );
  const { summary } = await load(dataDir, path);
  expect(summary).toMatchObject({ accepted: 3, rejected: 1 });
  expect(summary.reject_files[0]).toMatch(/mixed\.zip\.b_c_d\.json-[0-9a-f]+\.rejected\.ndjson$/);
  const root = join(folder, "mixed");
  mkdirSync(root);
  writeFileSync(join(root, "1.json"), lines(1));
  writeFileSync(join(root, "2.pdf"), "%PDF-1.7");
  writeFileSync(join(root, "3.zip"), zipSync({ "inner.zip": zipSync({ a: utf8("x") }) }));
  writeFileSync(join(root, "4.zip"), zipSync({ "x.json": utf8(lines(4)) }).subarray(0, 60));
  writeFileSync(join(root, "5.json"), JSON.stringify([event(5), event(6)]).slice(0, -20));
  writeFileSync(join(root, "6.csv"), "date,visitors,pageviews\n2024-01-02,1,2\n");
  writeFileSync(join(root, "7.json"), lines(7));
  const folderRun = await load(dataDir, root);
  expect(folderRun.code).toBe(1);
  expect(folderRun.summary).toMatchObject({ accepted: 2, duplicate: 1, complete: false });
  for (const words of ["PDF", "archive inside", "no zip archive", "has no end", "totals"])
    expect(folderRun.stderr).toContain(words);
}, 60_000);

test("a device and its user become one person, once, and groups get their properties", async () => {
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const time = (n: number) => `2024-01-02 03:04:${String(n).padStart(2, "0")}`;
  const amplitude = (n: number, ids: object, more: object = {}) =>
    JSON.stringify({ event_type: "a", event_time: time(n), $insert_id: `i${n}`, ...ids, ...more });
  const group = { groups: { org: ["acme"] }, group_properties: { org: { acme: { size: 3 } } } };
  const path = file(
    "amp.ndjson",
    [
      amplitude(1, { device_id: "d1" }),
      amplitude(2, { device_id: "d1", user_id: "u1" }, group),
      amplitude(3, { device_id: "d1", user_id: "u1" }, group),
      amplitude(4, { device_id: "d2", user_id: "u1" }, group),
      amplitude(5, { device_id: "d2" }),
      amplitude(6, { device_id: "d3", user_id: "d3" }),
    ].join("\n"),
  );
  const counts = { read: 6, accepted: 6, duplicate: 0, made: 3, rejected: 0 };
  expect((await load(dataDir, path, "--dry-run")).summary).toMatchObject(counts);
  expect((await load(dataDir, path)).summary).toMatchObject(counts);
  expect((await load(dataDir, path)).summary).toMatchObject({
    ...counts,
    accepted: 0,
    duplicate: 6,
    made: 0,
  });
  await using server = await ServerProcess.start({ directory });
  const events = await server.eventsWhenStored(9);
  expect(events.map((each) => each.event)).toEqual([
    "a",
    "$identify",
    "$groupidentify",
    "a",
    "a",
    "$identify",
    "a",
    "a",
    "a",
  ]);
  expect(await rows(dataDir, "SELECT count(*) AS n FROM persons")).toEqual([{ n: 2 }]);
  const groups = JSON.stringify(await rows(dataDir, "SELECT key, properties FROM groups"));
  expect(groups.replaceAll("\\", "")).toMatch(/"acme".*"size":3/);

  const other = await initializedDirectory();
  expect((await load(other.dataDir, path, "--no-link-identities")).summary).toMatchObject({
    accepted: 6,
    made: 1,
  });
}, 60_000);

test("persons and groups of an export are loaded again", async () => {
  await using source = await ServerProcess.start();
  const timestamp = "2024-01-02T03:04:05Z";
  await source.batch([
    { event: "a", distinct_id: "anon", timestamp },
    {
      event: "$identify",
      distinct_id: "u",
      timestamp,
      properties: { $anon_distinct_id: "anon", $set: { a: 1 } },
    },
    {
      event: "$groupidentify",
      distinct_id: "u",
      timestamp,
      properties: { $group_type: "org", $group_key: "acme", $group_set: { size: 3 } },
    },
  ]);
  await source.eventsWhenStored(3);
  const { dataDir } = await initializedDirectory();
  for (const format of ["ndjson", "csv", "parquet"])
    for (const subject of ["persons", "groups"]) {
      const path = join(folder, `${subject}.${format}`);
      const args = ["export", subject, "--data-dir", source.dataDir, "--format", format, path];
      expect((await flagkeep(args)).code).toBe(0);
      const { summary, code } = await load(dataDir, path);
      expect({ format, subject, code, ...summary }).toMatchObject({ code: 0, read: 1, rejected: 0 });
      expect(summary.formats.join()).toContain(subject);
    }
  const persons = await rows(dataDir, "SELECT distinct_ids FROM persons WHERE prop('a') = '1'");
  expect(persons).toEqual([{ distinct_ids: ["u", "anon"] }]);
  const groups = JSON.stringify(await rows(dataDir, "SELECT key, properties FROM groups"));
  expect(groups.replaceAll("\\", "")).toMatch(/"acme".*"size":3/);
}, 120_000);

test("reloaded events are recognized, with any ids", async () => {
  const { dataDir } = await initializedDirectory();
  const hex = (length: number) =>
    fc
      .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
      .map((c) => c.join(""));
  const uuid = fc
    .tuple(hex(8), hex(4), fc.constantFrom(..."0123456789abcdef"), hex(3), hex(4), hex(12))
    .map(([a, b, version, c, d, e]) => `${a}-${b}-${version}${c}-${d}-${e}`);
  const edges = ["0", "7", "8", "f"].flatMap((first) =>
    ["4", "7"].map((version) => `${first.repeat(8)}-${first.repeat(4)}-${version}fff-bfff-ffffffffffff`),
  );
  const record = fc.record({
    uuid: fc.oneof(
      uuid,
      uuid.map((id) => id.toUpperCase()),
      uuid.map((id) => id.replaceAll("-", "")),
      fc.string(),
    ),
    $insert_id: fc.option(fc.string(), { nil: undefined }),
    timestamp: fc.integer({ min: 700_000_000, max: 1_700_000_000 }),
  });
  const seed = process.env.FLAGKEEP_TEST_SEED === "random" ? Date.now() : 16;
  const records = [
    ...edges.map((id, n) => ({ uuid: id, timestamp: 1.7e9 + n })),
    ...fc.sample(record, { seed, numRuns: 8_000 }),
  ];
  const text = records.map((each, n) => JSON.stringify({ ...event(n), ...each })).join("\n");
  const path = file("ids.ndjson", text);
  const first = (await load(dataDir, path)).summary;
  expect(first.accepted + first.duplicate).toBe(records.length);
  expect(first.accepted).toBeGreaterThan(7_000);
  for (let again = 0; again < 2; again++)
    expect((await load(dataDir, path)).summary).toMatchObject({
      accepted: 0,
      duplicate: records.length,
      rejected: 0,
    });
  // In another order, in other files.
  const shuffled = file(
    "ids-2.ndjson",
    text
      .split("\n")
      .reverse()
      .filter((line) => line.includes("uuid"))
      .join("\n"),
  );
  const known = (await load(dataDir, shuffled)).summary;
  const withOwnId = records.filter(({ uuid: id }) =>
    /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(id),
  );
  expect(known.duplicate).toBeGreaterThanOrEqual(withOwnId.length);
}, 120_000);
