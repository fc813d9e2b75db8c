import { expect, test } from "bun:test";
import { skippedSummary } from "./skipped-summary.ts";

test("the summary names each missing component once, and replaces the lines of the tests", () => {
  const summary = skippedSummary();
  const lines = [
    "(pass) one",
    "SKIPPED the console in a browser: no Chromium here",
    "SKIPPED the pages of the console: no Chromium here",
    "SKIPPED tests with another user: this needs root, setpriv and a readable executable.",
    " 12 pass",
    " 3 skip",
  ];
  expect(lines.filter((line) => !summary.replaces(line))).toEqual(["(pass) one", " 12 pass", " 3 skip"]);
  expect(summary.line()).toBe("3 tests skipped; missing: Chromium; root, setpriv and a readable executable");
});

test("there is no summary if all tests ran", () => {
  const summary = skippedSummary();
  expect(summary.replaces(" 12 pass")).toBe(false);
  expect(summary.line()).toBeUndefined();
});

test("the runner keeps the counts and the exit status of bun test", () => {
  const run = (name: string) =>
    Bun.spawnSync([process.execPath, "test/support/run-tests.ts", "test/house/roles.test.ts", "-t", name], {
      env: { ...process.env, FLAGKEEP_TEST_EXECUTABLE: "/nowhere" },
    });
  const { exitCode, stdout, stderr } = run("no test has this name");
  expect(exitCode).not.toBe(0);
  expect(stdout.toString() + stderr.toString()).not.toContain("SKIPPED");
});
