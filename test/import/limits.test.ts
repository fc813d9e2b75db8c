/** Files that mean harm, or were taken for something else: an import ends with a sentence and a bounded reject file. */

import { afterAll, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ImportSummary } from "../../src/import/summary.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

const good = (n: number) =>
  JSON.stringify({ event: "e", distinct_id: `u${n}`, timestamp: 1.7e9 + n, properties: { n } });

const file = (name: string, content: string | Uint8Array) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

async function load(dataDir: string, path: string, ...args: string[]) {
  const { stdout, stderr, code } = await flagkeep(["import", path, "--json", "--data-dir", dataDir, ...args]);
  expect(stderr).not.toContain("    at ");
  const summary = stdout === "" ? undefined : (JSON.parse(stdout) as ImportSummary);
  return { summary, stderr, code };
}

test("--max-rejects: exactly that many, then it stops; with --resume and a larger number it continues", async () => {
  const { dataDir } = await initializedDirectory();
  const lines = Array.from({ length: 9_000 }, (_, n) => (n % 3 === 1 ? `bad ${n}` : good(n)));
  const path = file("many.ndjson", lines.join("\n"));
  const rejects = () => readFileSync(`${path}.rejected.ndjson`, "utf8").trim().split("\n").length;

  const dry = await load(dataDir, path, "--max-rejects", "10", "--dry-run");
  expect(dry).toMatchObject({ code: 1, summary: { rejected: 10, complete: false } });
  const first = await load(dataDir, path, "--max-rejects", "1200");
  // The record before the 1,201st that is rejected.
  const counts = { read: 3_601, accepted: 2_401, duplicate: 0, rejected: 1_200 };
  expect(first).toMatchObject({ code: 1, summary: { ...counts, complete: false } });
  expect(first.stderr).toContain("line 3602 (not_json)");
  expect(first.stderr).toContain("--max-rejects");
  expect(rejects()).toBe(1_200);
  expect((await load(dataDir, path, "--max-rejects", "1200", "--resume")).summary).toMatchObject(counts);
  const whole = await load(dataDir, path, "--resume");
  const all = { read: 9_000, accepted: 6_000, duplicate: 0, rejected: 3_000, complete: true };
  expect(whole).toMatchObject({ code: 0, summary: { ...all, resumed: 3_601 } });
  expect(rejects()).toBe(3_000);
  expect((await load(dataDir, file("strict.ndjson", `${good(1)}\nbad`), "--max-rejects", "0")).code).toBe(1);
}, 120_000);

test("a file whose first 1,000 records are all rejected is aborted; nothing accepted is a failure", async () => {
  const { dataDir } = await initializedDirectory();
  const other = JSON.stringify({ kind: "metric", value: 1 });
  const path = file("other.ndjson", `${Array(20_000).fill(other).join("\n")}\n${good(1)}`);
  const { stderr, code, summary } = await load(dataDir, path, "--format", "ndjson");
  expect({ code, summary }).toMatchObject({
    code: 1,
    summary: { read: 1_000, rejected: 1_000, accepted: 0 },
  });
  expect(stderr).toContain("kind, value");
  expect(stderr).toContain("missing_event_name");
  const few = await load(dataDir, file("few.ndjson", other), "--format", "events");
  expect(few).toMatchObject({ code: 1, summary: { read: 1, rejected: 1, complete: true } });
  expect(few.stderr).toContain("No event was accepted");
  const none = await load(dataDir, file("none.ndjson", "\n"));
  expect(none.code).toBe(1);
  expect(none.stderr).toContain("The input contains no records.");
}, 120_000);

test("bombs: a small packed file creates no large reject file", async () => {
  const { dataDir } = await initializedDirectory();
  const start = `${good(1)}\n${good(2)}\n`;
  const long = `{"a":"${"x".repeat(50 * 1024 * 1024)}"}\n`;
  for (const [name, content] of [
    ["one-line.gz", Bun.gzipSync(Buffer.from(start + "x".repeat(300 * 1024 * 1024)))],
    ["lines.gz", Bun.gzipSync(Buffer.from(start + "{}\n".repeat(20_000_000)))],
    ["long.gz", Bun.gzipSync(Buffer.from(start + long.repeat(4)))],
    ["deep.ndjson", Buffer.from(`${start}${"[".repeat(200_000)}${"]".repeat(200_000)}\n${good(3)}`)],
  ] as const) {
    const path = file(name, content);
    const { summary } = await load(dataDir, path);
    expect(summary!.accepted + summary!.duplicate).toBe(name === "deep.ndjson" ? 3 : 2);
    expect(summary!.rejected).toBeLessThanOrEqual(10_000);
    expect(statSync(`${path}.rejected.ndjson`).size).toBeLessThan(2 * 1024 * 1024);
  }
}, 300_000);

test("a link in the place of the reject file is replaced, not followed", async () => {
  const { dataDir } = await initializedDirectory();
  const victim = file("victim", "mine");
  const path = file("linked.ndjson", `${good(1)}\nbad`);
  symlinkSync(victim, `${path}.rejected.ndjson`);
  expect((await load(dataDir, path)).summary).toMatchObject({ accepted: 1, rejected: 1 });
  expect(readFileSync(victim, "utf8")).toBe("mine");
  expect(existsSync(`${path}.rejected.ndjson`)).toBe(true);
});

test("events of 19 MB are imported from every format", async () => {
  await using source = await ServerProcess.start();
  const text = `é"${"y".repeat(1_000)}\n`;
  const long = text.repeat(Math.floor((19 * 1024 * 1024) / Buffer.byteLength(JSON.stringify(text))));
  const ids = ["x".repeat(5_000), `${"x".repeat(5_000)}2`];
  for (const id of ids)
    await source.batch([{ event: "n".repeat(500), distinct_id: id, properties: { long, id: 1.5 } }]);
  const exported = async (dataDir: string, format: string) => {
    const path = join(folder, `large.${format}`);
    rmSync(path, { force: true });
    const args = ["export", "events", "--data-dir", dataDir, "--format", format, path];
    expect(await flagkeep(args)).toMatchObject({ code: 0 });
    return path;
  };
  const retained = (path: string) =>
    readFileSync(path, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .map(({ uuid, event, distinct_id, timestamp, properties }) => [
        uuid,
        event,
        distinct_id,
        timestamp,
        Bun.hash(JSON.stringify(properties)),
      ]);
  const before = retained(await exported(source.dataDir, "ndjson"));
  expect(before.map(([, , id]) => id)).toEqual(ids);
  for (const format of ["ndjson", "csv", "parquet"]) {
    const path = await exported(source.dataDir, format);
    const { dataDir } = await initializedDirectory();
    expect(await load(dataDir, path, "--format", format)).toMatchObject({
      code: 0,
      summary: { accepted: 2 },
    });
    expect(retained(await exported(dataDir, "ndjson"))).toEqual(before);
  }
}, 300_000);

test("an event larger than ingestion accepts is rejected with its reason, on both ways; own exports are not", async () => {
  const limit = 64 * 1024;
  await using server = await ServerProcess.start({ args: ["--body-limit", "64KiB"] });
  const sized = (n: number, bytes: number, more: object = {}) => {
    const event = { ...JSON.parse(good(n)), uuid: Bun.randomUUIDv7(), ...more };
    event.properties.text = "é".repeat(bytes / 2);
    return JSON.stringify(event);
  };
  const own = {
    received_at: "2023-11-14T22:13:20.000000Z",
    seq: 1,
    timestamp: "2023-11-14T22:13:20.000000Z",
  };
  const small = Array.from({ length: 20 }, (_, n) => good(n));
  const complex = good(1).replace(/\}\}$/, `,"list":[${"[],".repeat(1_000_000)}[]]}}`);
  const reasons = (path: string) =>
    readFileSync(`${path}.rejected.ndjson`, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .map(({ line, reason }) => [line, reason]);
  for (const args of [[], ["--map", "x=y"]]) {
    const lines = [...small, sized(21, limit), sized(22, limit - 1_000), good(23)];
    const path = file(`large${args.length}.ndjson`, lines.join("\n"));
    const { code, summary } = await load(server.dataDir, path, ...args);
    expect({ code, summary }).toMatchObject({ code: 0, summary: { read: 23, rejected: 1 } });
    expect(reasons(path)).toEqual([[21, "message_size_too_large"]]);
  }
  const exported = await load(server.dataDir, file("own.ndjson", sized(1, limit, own)));
  expect(exported).toMatchObject({ code: 0, summary: { accepted: 1, rejected: 0 } });
  const { dataDir } = await initializedDirectory();
  const path = file("complex.ndjson", [good(0), complex, good(2)].join("\n"));
  expect((await load(dataDir, path)).summary).toMatchObject({ accepted: 2, rejected: 1 });
  expect(reasons(path)).toEqual([[2, "message_size_too_large"]]);
}, 120_000);
