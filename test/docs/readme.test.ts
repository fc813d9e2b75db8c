/** The README: its length, and its block for newcomers, which is run as it is printed. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { executable, temporaryFolder } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const readme = await Bun.file(join(import.meta.dir, "../../README.md")).text();
const folder = temporaryFolder();
useServer();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the README is short", () => {
  expect(readme.split("\n").length).toBeLessThanOrEqual(130);
  expect(readme.length).toBeLessThanOrEqual(7_500);
});

test("the block of the first flag and event works as pasted", async () => {
  const block = /## First flag and first event.*?```sh\n(.*?)```/s.exec(readme)?.[1];
  mkdirSync(join(folder, "dist"));
  symlinkSync(executable, join(folder, "dist/flagkeep"));
  symlinkSync(server.dataDir, join(folder, "data"));
  const script = block!.replaceAll("http://127.0.0.1:8000", server.url);
  const child = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    cwd: folder,
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, FLAGKEEP_DATA_DIR: undefined },
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain('"new-checkout":{"key":"new-checkout","enabled":true');
  expect(stdout).toContain('{"status":"Ok"}');
  expect(stdout).toContain('"event":"signed up"');
});
