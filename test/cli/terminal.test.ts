/** What long commands show on a terminal, and only there: a bar with rate and time left that goes away. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
} from "../support/server.ts";
import { installedProgram, testWhen } from "../support/skipped.ts";

const folder = temporaryFolder();
let dataDir: string;
beforeAll(async () => {
  const directory = await initializedDirectory();
  dataDir = directory.dataDir;
  const server = await ServerProcess.start({ directory });
  const batch = Array.from({ length: 3_000 }, (_, n) => ({ event: "x", distinct_id: `d${n % 50}` }));
  await server.batch(batch);
  await server.eventsWhenStored(3_000);
  await server.stop();
}, 60_000);
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
});

const hasTerminal = installedProgram("script") !== undefined;
const onTerminals = testWhen(hasTerminal, "progress on a terminal", "no `script`");

/** Runs a command on a terminal of its own; what it wrote there. */
async function onTerminal(...args: string[]): Promise<string> {
  const command = [executable, ...args].map((arg) => `'${arg}'`).join(" ");
  const child = Bun.spawn(["script", "-qec", `stty cols 150; ${command}`, "/dev/null"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { PATH: process.env.PATH, TERM: "xterm" },
  });
  const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  expect({ text, code }).toMatchObject({ code: 0 });
  return text;
}

const bar = (label: string, unit: string) =>
  new RegExp(
    `${label} \\[[█░]{24}\\] \\d+ %  [\\d.A-Za-z ]+ of [\\d.]+ ${unit}  [\\d.A-Za-z ]+/s  \\S+ left`,
  );

onTerminals(
  "export, backup and restore",
  async () => {
    const at = ["--data-dir", dataDir];
    expect(await onTerminal("export", "events", join(folder, "events.ndjson"), ...at)).toMatch(
      bar("Writing events", "rows"),
    );
    const created = await onTerminal("backup", "create", folder, ...at);
    expect(created).toMatch(bar("Packing", "MiB"));
    const file = /Backup +(\S+)/.exec(created)![1]!;
    const restored = await onTerminal("backup", "restore", file, "--data-dir", join(folder, "restored"));
    expect(restored).toMatch(bar("Unpacking", "MiB"));
    expect(await onTerminal("rebuild", "--data-dir", join(folder, "restored"))).toContain("was rebuilt");
  },
  120_000,
);

test("elsewhere there are plain lines, or none", async () => {
  const exported = await flagkeep(["export", "events", join(folder, "plain.ndjson"), "--data-dir", dataDir]);
  expect(exported.stderr).toBe(`3000 events are in ${join(folder, "plain.ndjson")}.\n`);
  const created = await flagkeep(["backup", "create", join(folder, "plain"), "--data-dir", dataDir]);
  expect(created.stderr).not.toContain("\u001b");
});
