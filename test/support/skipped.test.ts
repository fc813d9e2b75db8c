/** On a machine without a component, the tests that need it are skipped, and nothing of them is started. */

import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dir, "../..");

/** How test files in which everything depends on a component ask for it. */
const asks = {
  postgres: /testWith(Postgres|Cluster)\(/,
  // PostgreSQL does not run as root, and is started through it.
  setpriv: /testWith(Postgres|Cluster)\(/,
  clickhouse: /testWith(ClickHouse|Cluster)\(/,
  chromium: /^describe\.skipIf\(chromiumPath === undefined\)|^const browserTest = testWhen\(/m,
  python3: /^const pythonTest = testWhen\(/m,
};
type Asked = keyof typeof asks;
const all = Object.keys(asks) as Asked[];

const files = (readdirSync(join(root, "test"), { recursive: true }) as string[])
  .filter((name) => name.endsWith(".test.ts") && !name.includes("node_modules"))
  .map((name) => ({ name: `./test/${name}`, text: readFileSync(join(root, "test", name), "utf8") }))
  .filter(({ name }) => !name.endsWith("/support/skipped.test.ts"));

describe("a test file whose component is missing starts nothing", () => {
  for (const missing of all) {
    // Alone, and with everything else: one that needs two of them has to ask for both.
    for (const without of [[missing], all])
      test(without.length === 1 ? `only ${missing}` : `${missing}, as everything else`, async () => {
        const asking = files.filter(({ text }) => asks[missing].test(text)).map(({ name }) => name);
        expect(asking).not.toEqual([]);
        const child = Bun.spawn([process.execPath, "test", "--timeout", "60000", ...asking], {
          cwd: root,
          stdout: "pipe",
          stderr: "pipe",
          // Without the executable, a hook that starts a server fails.
          env: {
            ...process.env,
            FLAGKEEP_TEST_WITHOUT: without.join(),
            FLAGKEEP_TEST_EXECUTABLE: "/nowhere",
          },
        });
        const [stdout, stderr] = await Promise.all([
          new Response(child.stdout).text(),
          new Response(child.stderr).text(),
          child.exited,
        ]);
        expect(stderr).toMatch(/^ *0 fail$/m);
        expect(stdout).toContain("SKIPPED");
      }, 180_000);
  }
});

test("a component that is unknown is not left out silently", () => {
  const { stderr, exitCode } = Bun.spawnSync(
    [process.execPath, "-e", 'require("./test/support/skipped.ts")'],
    {
      cwd: root,
      env: { ...process.env, FLAGKEEP_TEST_WITHOUT: "postgresql" },
    },
  );
  expect(exitCode).not.toBe(0);
  expect(stderr.toString()).toContain("unknown component postgresql");
});
