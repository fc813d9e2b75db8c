/** `flagkeep import` as a user calls it, on whole files of every kind. */

import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { ImportSummary } from "../../src/import/summary.ts";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
} from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string | Uint8Array) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const lines = (...records: unknown[]) => records.map((record) => JSON.stringify(record)).join("\n");

async function run(dataDir: string, ...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await flagkeep([...args, "--project", "1", "--data-dir", dataDir]);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

const load = async (dataDir: string, path: string, ...args: string[]) =>
  checked(await run(dataDir, "import", path, "--json", ...args));

/** The output is one line of JSON of the documented shape and nothing else. */
function checked(stdout: string): ImportSummary {
  expect(stdout.trimEnd().split("\n")).toHaveLength(1);
  const summary = JSON.parse(stdout);
  expect([...Value.Errors(ImportSummary, summary)]).toEqual([]);
  return summary;
}

test("an export is imported equal, once, in order, from every format", async () => {
  await using source = await ServerProcess.start();
  await source.batch(
    Array.from({ length: 50 }, (_, n) => ({
      event: n === 3 ? "$autocapture" : `e${n}`,
      distinct_id: `u${n % 7}`,
      timestamp: new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString(),
      properties: {
        n,
        text: "ä\n\"',;",
        nested: { a: [1, null] },
        $set: { n },
        seq: n,
        ...(n === 3 ? { $elements: [{ tag_name: "button", $el_text: "Buy" }] } : {}),
        ...(n === 4 ? { $process_person_profile: false } : {}),
      },
    })),
  );
  const bare = ({
    uuid,
    event,
    distinct_id,
    timestamp,
    properties,
    elements_chain,
  }: (typeof before)[number]) => ({
    uuid,
    event,
    distinct_id,
    timestamp,
    properties,
    elements_chain,
  });
  const before = await source.eventsWhenStored(50);
  expect(before[3]!.elements_chain).toContain("button");
  for (const format of ["ndjson", "csv", "parquet"]) {
    const path = join(folder, `all.${format}`);
    await run(source.dataDir, "export", "events", "--format", format, path);
    await using target = await ServerProcess.start();
    const args = [path, "--format", format];
    const counts = { read: 50, accepted: 50, duplicate: 0, rejected: 0, resumed: 0, reject_files: [] };
    expect(await load(target.dataDir, path, "--format", format, "--dry-run")).toMatchObject({
      ...counts,
      dry_run: true,
    });
    expect(await target.events()).toHaveLength(0);
    expect(await load(target.dataDir, path, "--format", format)).toMatchObject({ ...counts, dry_run: false });
    for (const more of [[], ["--resume"]])
      expect(await load(target.dataDir, ...(args as [string]), ...more)).toMatchObject({
        ...counts,
        accepted: 0,
        duplicate: 50,
      });
    const after = await target.eventsWhenStored(50);
    expect(after.map(bare)).toEqual(before.map(bare));
    expect(after.every(({ historical }) => historical)).toBe(true);
  }
}, 120_000);

test("other products, packed files, standard input, folders; without a running server", async () => {
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const gz = (text: string) => Bun.gzipSync(Buffer.from(text));
  const amplitude = lines(
    {
      event_type: "amp",
      user_id: "a",
      event_time: "2024-01-02 03:04:05.123",
      $insert_id: "i1",
      user_properties: { plan: "pro" },
    },
    { event_type: "amp", user_id: "a", event_time: "2024-01-02 03:04:05.123", $insert_id: "i1" },
  );
  expect(await load(dataDir, file("amp", gz(amplitude)), "--format", "amplitude")).toMatchObject({
    accepted: 1,
    duplicate: 1,
  });
  const mixpanel = lines({
    event: "mix",
    properties: { distinct_id: "m", time: 1704164645, $insert_id: "i2" },
  });
  const zstd = Bun.zstdCompressSync(Buffer.from(mixpanel));
  expect(await load(dataDir, file("mix.zst", zstd), "--format", "mixpanel")).toMatchObject({ accepted: 1 });
  const segment = lines(
    { type: "track", event: "seg", userId: "s", messageId: "m1", timestamp: "2024-01-02T03:04:05Z" },
    {
      type: "identify",
      userId: "s",
      anonymousId: "anon",
      traits: { a: 1 },
      messageId: "m2",
      timestamp: "2024-01-02T03:04:05Z",
    },
  );
  expect(await load(dataDir, file("seg.json", segment), "--format", "segment")).toMatchObject({
    accepted: 2,
  });
  const posthog = lines({
    uuid: Bun.randomUUIDv7(),
    event: "$autocapture",
    distinct_id: "p",
    timestamp: "2024-01-02 03:04:05.000000",
    properties: `{"$set":{"plan":"free"}}`,
    elements_chain: 'a:text="x"',
    person_properties: "{}",
    team_id: 3,
  });
  expect(await load(dataDir, file("ph.jsonl", posthog), "--format", "posthog")).toMatchObject({
    accepted: 1,
  });
  const csv =
    'name,user,timestamp,color\ncsv,u1,2024-01-02T03:04:05Z,red\ncsv,u2,2024-01-02T03:04:06Z,"a,b"\n';
  const maps = ["--format", "csv", "--map", "name=event", "--map", "user=distinct_id"];
  expect(await load(dataDir, file("a.csv", csv), ...maps)).toMatchObject({ accepted: 2 });
  // Under another name and packed it is the same file.
  expect(await load(dataDir, file("b.csv.gz", gz(csv)), ...maps)).toMatchObject({
    accepted: 0,
    duplicate: 2,
  });

  mkdirSync(join(folder, "parts/deep"), { recursive: true });
  for (const [name, n] of [
    ["part-10", 3],
    ["part-2", 2],
    ["deep/part-1", 1],
    ["part-2.rejected.ndjson", 9],
  ] as const)
    file(`parts/${name}`, lines({ event: `part ${n}`, distinct_id: "d", timestamp: "2024-01-02" }));
  expect(await load(dataDir, join(folder, "parts"))).toMatchObject({ read: 3, accepted: 3 });

  const child = Bun.spawn([executable, "import", "-", "--json", "--data-dir", dataDir], {
    stdin: gz(lines({ event: "piped", distinct_id: "d", timestamp: "2024-01-02" })),
    stdout: "pipe",
    env: {},
  });
  expect(checked(await new Response(child.stdout).text())).toMatchObject({ read: 1, accepted: 1 });

  await using server = await ServerProcess.start({ directory });
  const events = await server.eventsWhenStored(11);
  const names = "amp mix seg $identify $autocapture csv csv part_1 part_2 part_3 piped".split(" ");
  expect(events.map(({ event }) => event.replace(" ", "_"))).toEqual(names);
  expect(events[0]).toMatchObject({ timestamp: "2024-01-02T03:04:05.123000Z" });
  expect(events[1]).toMatchObject({ timestamp: "2024-01-02T03:04:05.000000Z" });
  expect(events[4]).toMatchObject({ elements_chain: 'a:text="x"', properties: { $set: { plan: "free" } } });
  expect(events[6]!.properties).toEqual({ color: "a,b" });
  expect(events[0]!.person!.properties).toMatchObject({ plan: "pro" });
}, 60_000);

test("invalid records are in the reject file with their lines; a corrupt end is reported", async () => {
  const { dataDir } = await initializedDirectory();
  const bad = file(
    "bad.ndjson",
    [
      `{"event":"ok","distinct_id":"a","timestamp":"2024-01-02"}`,
      "not json",
      `{"event":"x"}`,
      `{"distinct_id":"a"}`,
      `{"event":"x","distinct_id":"a","timestamp":"soon"}`,
      `{"event":"x","distinct_id":"a"}`,
      `{"event":"x","distinct_id":"a","timestamp":"2024-01-02","properties":[1]}`,
      "",
    ].join("\n"),
  );
  const dry = await flagkeep(["import", bad, "--dry-run", "--data-dir", dataDir]);
  expect(dry.stderr).toContain("line 3: missing_distinct_id\n");
  expect(existsSync(`${bad}.rejected.ndjson`)).toBe(false);
  for (const accepted of [1, 0]) {
    const summary = await load(dataDir, bad);
    expect(summary).toMatchObject({ read: 7, accepted, duplicate: 1 - accepted, rejected: 6 });
    expect(summary.reject_files).toEqual([`${bad}.rejected.ndjson`]);
    const rejects = readFileSync(`${bad}.rejected.ndjson`, "utf8").trim().split("\n");
    expect(rejects.map((text) => JSON.parse(text))).toEqual([
      { line: 2, reason: "not_json", record: "not json" },
      { line: 3, reason: "missing_distinct_id", record: { event: "x" } },
      { line: 4, reason: "missing_event_name", record: { distinct_id: "a" } },
      {
        line: 5,
        reason: "ignored_invalid_timestamp",
        record: { event: "x", distinct_id: "a", timestamp: "soon" },
      },
      {
        line: 6,
        reason: "historical_event_without_timestamp",
        record: { event: "x", distinct_id: "a" },
      },
      {
        line: 7,
        reason: "invalid_properties",
        record: { event: "x", distinct_id: "a", timestamp: "2024-01-02", properties: [1] },
      },
    ]);
  }

  const whole = Bun.gzipSync(
    Buffer.from(
      lines(
        ...Array.from({ length: 5_000 }, (_, n) => ({
          event: "z",
          distinct_id: `u${Bun.hash(String(n))}`,
          timestamp: 1.7e9 + n,
        })),
      ),
    ),
  );
  const cut = file("cut.gz", whole.subarray(0, whole.length - 2_000));
  const corrupt = await flagkeep(["import", cut, "--json", "--data-dir", dataDir]);
  expect(corrupt.code).toBe(1);
  expect(corrupt.stderr).toContain("corrupt");
  const first = checked(corrupt.stdout);
  expect(first.complete).toBe(false);
  expect(first.accepted).toBeGreaterThan(3_000);
  // The repaired file continues where the corruption was.
  file("cut.gz", whole);
  const second = await load(dataDir, cut, "--resume");
  expect(second).toMatchObject({
    read: 5_000,
    accepted: 5_000,
    rejected: 0,
    complete: true,
    reject_files: [],
  });
  expect(second.resumed).toBeGreaterThan(3_000);
}, 60_000);

test("another file under the same name is not resumed", async () => {
  const { dataDir } = await initializedDirectory();
  const whole = Bun.gzipSync(
    Buffer.from(
      lines(
        ...Array.from({ length: 3_000 }, (_, n) => ({
          event: "z",
          distinct_id: `u${Bun.hash(String(n))}`,
          timestamp: 1.7e9 + n,
        })),
      ),
    ),
  );
  const path = file("changing", whole.subarray(0, whole.length - 1_000));
  expect((await flagkeep(["import", path, "--data-dir", dataDir])).code).toBe(1);
  file("changing", lines(...Array.from({ length: 3_000 }, () => ({ event: "other", distinct_id: "o" }))));
  const { code, stderr } = await flagkeep(["import", path, "--resume", "--data-dir", dataDir]);
  expect(code).toBe(1);
  expect(stderr).toContain("without --resume");
}, 60_000);

test("wrong calls end with one sentence", async () => {
  const { dataDir } = await initializedDirectory();
  mkdirSync(join(folder, "empty"), { recursive: true });
  for (const [args, expected] of [
    [["no-such-file"], 1],
    [[join(folder, "empty")], 1],
    [["-", "--format", "xml"], 2],
    [["-", "--map", "x"], 2],
  ] as const) {
    const { stdout, stderr, code } = await flagkeep(["import", ...args, "--data-dir", dataDir]);
    expect({ args, stdout, code }).toEqual({ args, stdout: "", code: expected });
    expect(stderr).not.toContain("    at ");
  }
});
