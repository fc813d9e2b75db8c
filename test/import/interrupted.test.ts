/** An import that is killed again and again and resumed: everything in order, nothing twice, one summary over all. */

import { expect, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { ImportSummary } from "../../src/import/summary.ts";
import {
  executable,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
  until,
} from "../support/server.ts";

const recordCount = Number(process.env.FLAGKEEP_TEST_IMPORT_EVENTS ?? 60_000);

/** Most lines have no id of their own; some are broken, and some are the same event as one far before them. */
function getFile(folder: string) {
  const lines: string[] = [];
  const rejected: number[] = [];
  let duplicate = 0;
  for (let n = 0; n < recordCount; n++) {
    const event = {
      event: "old",
      distinct_id: `u${n % 500}`,
      timestamp: 1_600_000_000 + n,
      properties: { n },
    };
    if (n % 997 === 5) {
      lines.push(`{"event": "cut off`);
      rejected.push(n + 1);
    } else if (n % 1_000 === 10) {
      const first = n >= recordCount / 2 ? n - recordCount / 2 : n;
      if (first !== n) duplicate += 1;
      lines.push(
        JSON.stringify({ ...event, uuid: `00000000-0000-4000-8000-${String(first).padStart(12, "0")}` }),
      );
    } else lines.push(JSON.stringify(event));
  }
  const path = join(folder, "events.ndjson");
  writeFileSync(path, lines.join("\n"));
  const accepted = recordCount - rejected.length - duplicate;
  return { path, rejected, counts: { read: recordCount, accepted, duplicate, rejected: rejected.length } };
}

/** Starts the import; the progress that it has written down tells how far it is. */
function startImport(path: string, dataDir: string, ...more: string[]) {
  const args = ["import", path, "--project", "1", "--data-dir", dataDir, "--json", ...more];
  const child = Bun.spawn([executable, ...args], { stdout: "pipe", stderr: "pipe", env: {} });
  const end = async () => {
    const [stdout, stderr, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`The import ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as ImportSummary;
  };
  const kill = async () => {
    child.kill("SIGKILL");
    await child.exited;
    expect(child.exitCode).not.toBe(0);
  };
  const isProgressAt = (share: number) =>
    until(() => (lineIn(dataDir) ?? 0) >= recordCount * share, `the import has done ${share}`, 180_000);
  return { end, kill, isProgressAt };
}

function lineIn(dataDir: string): number | undefined {
  const folder = join(dataDir, "import-state");
  try {
    const names = readdirSync(folder, { recursive: true }).map(String);
    const name = names.find((each) => each.endsWith(".json"));
    return name === undefined ? undefined : JSON.parse(readFileSync(join(folder, name), "utf8")).line;
  } catch {
    return undefined;
  }
}

test(`${recordCount} records, killed three times: the command, the server, both`, async () => {
  const folder = temporaryFolder();
  const { path, rejected, counts } = getFile(folder);
  const directory = await initializedDirectory();
  const { dataDir } = directory;

  let server = await ServerProcess.start({ directory });
  const first = startImport(path, dataDir);
  await first.isProgressAt(0.15);
  await first.kill();

  const second = startImport(path, dataDir, "--resume");
  await second.isProgressAt(0.4);
  await server.kill();
  server = await ServerProcess.start({ directory });
  await second.isProgressAt(0.6);
  await Promise.all([second.kill(), server.kill()]);

  // Without a running server, and killed once more.
  const third = startImport(path, dataDir, "--resume");
  await third.isProgressAt(0.8);
  await third.kill();
  const { resumed, ...summary } = await startImport(path, dataDir, "--resume").end();
  expect(Value.Check(ImportSummary, { resumed, ...summary })).toBe(true);
  expect(summary).toMatchObject({ ...counts, complete: true, dry_run: false });
  expect(resumed).toBeGreaterThan(recordCount * 0.6);

  const rejects = readFileSync(`${path}.rejected.ndjson`, "utf8").trim().split("\n");
  expect(rejects.map((text) => JSON.parse(text).line)).toEqual(rejected);

  server = await ServerProcess.start({ directory });
  const stored = await server.eventsWhenStored(counts.accepted, "order=seq&historical=true");
  const numbers = stored.map(({ properties }) => properties.n as number);
  expect(numbers.every((n, index) => index === 0 || n > numbers[index - 1]!)).toBe(true);

  // Another time from the beginning: all is known, also what has no id.
  const again = await startImport(path, dataDir).end();
  expect(again).toMatchObject({
    ...counts,
    accepted: 0,
    duplicate: counts.accepted + counts.duplicate,
    resumed: 0,
  });
  expect(await server.events()).toHaveLength(counts.accepted);
  await server.kill();
  for (const each of [dataDir, folder]) rmSync(each, { recursive: true, force: true });
}, 600_000);
