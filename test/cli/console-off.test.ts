/** Where the console is switched off, no command prints a link to it. */

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { flagkeep, type Initialized, ServerProcess, temporaryFolder } from "../support/server.ts";

const off = { FLAGKEEP_CONSOLE: "off" };

/** How many one-time links a start or a command has made. */
function linksIn(dataDir: string): number {
  using db = new Database(join(dataDir, "flagkeep.sqlite"), { readonly: true });
  return (db.query("SELECT count(*) AS n FROM setup_link").get() as { n: number }).n;
}

test("init and serve create no link, and users link suggests an alternative", async () => {
  const dataDir = join(temporaryFolder(), "data");
  const { stdout } = await flagkeep(["init", "--json", "--data-dir", dataDir], off);
  const initialized = JSON.parse(stdout) as Initialized;
  expect(initialized).toMatchObject({ console_url: "", personal_api_key: expect.stringMatching(/^phx_/) });
  for (const [console, links] of [
    ["off", 0],
    ["on", 1],
  ] as const) {
    const directory = { dataDir, initialized };
    await using _ = await ServerProcess.start({ directory, args: ["--console", console] });
    expect([console, linksIn(dataDir)]).toEqual([console, links]);
  }
  const rejected = await flagkeep(["users", "link", "new@example.com", "--data-dir", dataDir], off);
  expect(rejected).toMatchObject({ stdout: "", code: 1 });
  expect(rejected.stderr).toContain("`flagkeep keys create`");
  expect(linksIn(dataDir)).toBe(1);
  rmSync(dirname(dataDir), { recursive: true });
});

test("init prints the console's address only if it is enabled", async () => {
  for (const [env, isThere] of [
    [off, false],
    [{}, true],
  ] as const) {
    const folder = temporaryFolder();
    const { stdout, code } = await flagkeep(["init", "--data-dir", join(folder, "data")], env);
    expect([code, stdout.includes("/console/setup#"), stdout.includes("open the console")]).toEqual([
      0,
      isThere,
      isThere,
    ]);
    rmSync(folder, { recursive: true });
  }
});
