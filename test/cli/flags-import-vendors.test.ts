/** Files of other products through `flags import`, and their flags over HTTP (contract, import 3: F1, F5, F6). */

import { afterAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { conditionRows } from "../flags/import-export/vendors/table-rows.ts";
import { flagkeep, initializedDirectory, ServerProcess } from "../support/server.ts";

const directory = await initializedDirectory();
const { dataDir } = directory;
const folder = join(dataDir, "..");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const flags = (...args: string[]) => flagkeep(["flags", ...args, "--data-dir", dataDir]);
const getLines = (stderr: string) => stderr.split("\n").filter((line) => line.startsWith("Not taken over"));
function getFile(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

test("a missing attribute means the same as in each product", async () => {
  // The key of the flag in each file is "f".
  for (const [index, [, text]] of conditionRows.entries()) {
    const file = getFile("row.json", text.replaceAll('"f"', `"row-${index}"`));
    const { code, stderr } = await flags("import", file);
    expect([code, stderr]).toEqual([0, ""]);
  }
  await using server = await ServerProcess.start({ directory });
  const evaluate = async (person_properties: object): Promise<Record<string, { enabled: boolean }>> => {
    const body = { api_key: server.token, distinct_id: "p", person_properties };
    return (
      (await (await server.post("/flags/?v=2", body)).json()) as {
        flags: Record<string, { enabled: boolean }>;
      }
    ).flags;
  };
  const results = await Promise.all([{}, { plan: "a" }, { plan: "b" }].map(evaluate));
  const found = conditionRows.map(([name], index) => [
    name,
    ...results.map((result) => result[`row-${index}`]?.enabled),
  ]);
  expect(found).toEqual(conditionRows.map(([name, , ...expected]) => [name, ...expected]));
}, 120_000);

const rule = (op: string) => ({ clauses: [{ attribute: "x", op, values: ["a"] }], variation: 0 });
const flag = (more: object) => ({
  on: true,
  variations: [true, false],
  fallthrough: { variation: 1 },
  ...more,
});
const needs = (key: string) =>
  flag({ prerequisites: [{ key, variation: 0 }], fallthrough: { variation: 0 } });
const launchDarkly = {
  flags: {
    good: flag({ rules: [rule("in")] }),
    bad: flag({ rules: [rule("like"), rule("in"), rule("sounds")] }),
    child: needs("bad"),
    broken: 7,
  },
};

describe("a file of LaunchDarkly with unsupported flags", () => {
  const file = getFile("launchdarkly.json", JSON.stringify(launchDarkly));
  const lines = [
    'Not taken over: flag bad, rule 1: the operator "like" has no counterpart.',
    'Not taken over: flag bad, rule 3: the operator "sounds" has no counterpart.',
    "Not taken over: flag child, prerequisites: it depends on the flag bad, which is imported turned off.",
    "Not taken over: flag broken, the flag: is not an object.",
  ];
  const getActive = async () => {
    const { flags: list } = JSON.parse((await flags("export", "--json")).stdout);
    const wanted = Object.keys(launchDarkly.flags);
    return Object.fromEntries(
      list
        .filter(({ key }: { key: string }) => wanted.includes(key))
        .map(({ key, active }: { key: string; active: boolean }) => [key, active]),
    );
  };

  test("a dry run and the import list the same lines; dependents are off, and keep their rules", async () => {
    const dryRun = await flags("import", file, "--dry-run");
    expect([dryRun.code, getLines(dryRun.stderr), await getActive()]).toEqual([0, lines, {}]);
    const real = await flags("import", file);
    expect([real.code, getLines(real.stderr)]).toEqual([0, lines]);
    expect(real.stdout).toContain("Imported turned off: bad, child.");
    expect(await getActive()).toEqual({ good: true, bad: false, child: false });
    const child = JSON.parse((await flags("get", "child", "--json")).stdout);
    expect(child.filters.groups).toMatchObject([{ properties: [{ type: "flag", value: true }] }]);
  });

  test("a second import changes nothing, and flags that were turned on stay on", async () => {
    const { stdout, stderr } = await flags("import", file);
    expect([stdout, getLines(stderr)]).toEqual([expect.stringContaining("No differences."), lines]);
    for (const key of ["bad", "child"]) expect((await flags("enable", key)).code).toBe(0);
    expect((await flags("import", file)).stdout).toContain("No differences.");
    expect(await getActive()).toEqual({ good: true, bad: true, child: true });
  });

  test("a flag that changed in the source and lost something is off again, and its dependents", async () => {
    const changed = { ...launchDarkly.flags, bad: flag({ rules: [rule("like"), rule("contains")] }) };
    const other = getFile("changed.json", JSON.stringify({ flags: changed }));
    const { code } = await flags("import", other);
    expect([code, await getActive()]).toEqual([0, { good: true, bad: false, child: false }]);
  });
});

describe("exit statuses", () => {
  const run = async (name: string, content: string, ...args: string[]) =>
    (await flags("import", getFile(name, content), "--dry-run", ...args)).code;
  test("0: some flags were read; 1: none, or no file of flags; 2: an invalid call", async () => {
    expect(await run("one.json", JSON.stringify({ flags: { good: flag({}), broken: 7 } }))).toBe(0);
    expect(await run("none.json", JSON.stringify({ broken: 7, f: { variations: 5, defaultRule: {} } }))).toBe(
      1,
    );
    expect(await run("not.json", "{")).toBe(1);
    expect(await run("other.json", JSON.stringify({ hello: "world" }))).toBe(1);
    expect(await run("deep.json", "[".repeat(50_000))).toBe(1);
    const environments = { a: {}, b: {} };
    const api = JSON.stringify({
      items: [{ key: "f", variations: [{ _id: "a", value: true }], environments }],
    });
    expect(await run("environments.json", api)).toBe(1);
    expect((await flags("import")).code).toBe(2);
    expect((await flags("import", "a", "b")).code).toBe(2);
    expect((await flags("import", "--sideways", "a")).code).toBe(2);
  });
});
