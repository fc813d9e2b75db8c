/** Standard input and pipes, which can be read only once, are imported like files. Source: contract, import 1.1 and 1.9. */

import { afterAll, expect, test } from "bun:test";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { UnreadableFileError } from "../../src/import/read/input.ts";
import { isPiped, PipedInput } from "../../src/import/read/piped-input.ts";
import { SpoolFile } from "../../src/import/read/spool-file.ts";
import type { ImportSummary } from "../../src/import/summary.ts";
import { executable, temporaryFolder } from "../support/server.ts";
import { getLines, SampleProject } from "./samples.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

const records = [
  ["a", "b"],
  ["b", "c"],
].map(([user_id, device_id], n) => ({
  event_type: "e",
  event_time: `2024-01-02 00:00:0${n}`,
  user_id,
  device_id,
}));

/** Standard input, and a process substitution. */
const commands = ['cat "$FILE" | "$BIN" import -', '"$BIN" import <(cat "$FILE")'];

function run(command: string, project: SampleProject, path: string) {
  const { stdout, stderr, exitCode } = Bun.spawnSync(["bash", "-c", `${command} --json --data-dir "$DATA"`], {
    env: { PATH: process.env.PATH, BIN: executable, FILE: path, DATA: project.dataDir },
  });
  const text = stdout.toString();
  const summary = text === "" ? undefined : (JSON.parse(text) as ImportSummary);
  return { code: exitCode, stderr: stderr.toString(), summary };
}

for (const command of commands) {
  test(`users of all records are known before the first link: ${command}`, async () => {
    const project = await SampleProject.create();
    const path = project.write("amplitude.json", getLines(records));
    const counts = { read: 2, accepted: 2, made: 1 };
    expect(run(command, project, path)).toMatchObject({ code: 0, stderr: "", summary: counts });
    expect(await project.persons()).toEqual([["a"], ["b", "c"]]);
    const state = join(project.dataDir, "import-state");
    expect(readdirSync(state).filter((name) => name.startsWith("unpacked"))).toEqual([]);
  }, 60_000);

  test(`rejects are in the data directory: ${command}`, async () => {
    const project = await SampleProject.create();
    const path = project.write("events.json", `{"event":"e","distinct_id":"u","timestamp":1.7e9}\nbad`);
    const { code, summary } = run(command, project, path);
    expect({ code, summary }).toMatchObject({ code: 0, summary: { accepted: 1, rejected: 1 } });
    expect(summary!.reject_files.map(dirname)).toEqual([project.dataDir]);
    expect(await Bun.file(summary!.reject_files[0]!).text()).toContain("not_json");
  }, 60_000);

  test(`nothing is loaded of packed input with a wrong checksum: ${command}`, async () => {
    const project = await SampleProject.create();
    const packed = Buffer.from(Bun.gzipSync(Buffer.from(getLines(records))));
    packed[packed.length - 6]! ^= 1;
    const path = join(project.folder, "amplitude.gz");
    await Bun.write(path, packed);
    const broken = run(command, project, path);
    expect(broken).toMatchObject({ code: 1, summary: undefined });
    expect(broken.stderr).toContain("Nothing of it was imported.");
    expect(await project.persons()).toEqual([]);
  }, 60_000);
}

test("passes read the same bytes; the last one copies nothing", async () => {
  const path = join(folder, "bytes");
  const content = Buffer.alloc(5 * 1024 * 1024, "0123456789");
  await Bun.write(path, content);
  const arrived: number[] = [];
  using piped = new PipedInput(path, folder, (bytes) => arrived.push(bytes));
  const pass = async (chunks: number) => {
    const read: Buffer[] = [];
    for await (const chunk of piped.chunks()) {
      read.push(chunk);
      if (read.length === chunks) break;
    }
    return Buffer.concat(read);
  };
  const copied = () =>
    readdirSync(folder)
      .filter((name) => name.startsWith("unpacked"))
      .reduce((sum, name) => sum + Bun.file(join(folder, name)).size, 0);
  const first = await pass(2);
  expect(first.equals(content.subarray(0, first.length))).toBe(true);
  expect(copied()).toBe(first.length);
  expect((await pass(3)).length).toBeGreaterThan(first.length);
  const before = copied();
  piped.startLastPass();
  expect((await pass(Number.POSITIVE_INFINITY)).equals(content)).toBe(true);
  expect(copied()).toBe(before);
  expect(arrived.reduce((sum, bytes) => sum + bytes, 0)).toBe(content.length);
});

test("input that cannot be read fails in every pass; copies are limited", async () => {
  expect([isPiped("-"), isPiped("/dev/null"), isPiped(folder), isPiped(import.meta.path)]).toEqual([
    true,
    true,
    true,
    false,
  ]);
  using piped = new PipedInput(folder, folder, () => undefined);
  for (let pass = 1; pass <= 2; pass++)
    expect(await Array.fromAsync(piped.chunks()).catch((error) => error)).toBeInstanceOf(UnreadableFileError);
  using copy = new SpoolFile(folder, 10);
  copy.append(Buffer.alloc(10));
  expect(() => copy.append(Buffer.alloc(1))).toThrow("more than half of the free disk space");
});
