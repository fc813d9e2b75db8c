/** Budgets of lines: for each file, so that it has one subject, and for each module, so that growth is a decision. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");

const fileLinesMax = 450;

/** Longer files. These may only become shorter. */
const longer: Readonly<Record<string, number>> = {
  // Generated from the schemas of the API.
  "src/console/page/lib/api-types.ts": Number.POSITIVE_INFINITY,
};

/**
 * Lines of each module. Raise a number in the commit that needs it, and say why there; shared code, or a module of its
 * own, may be the better answer.
 */
const moduleLinesMax: Readonly<Record<string, number>> = {
  cli: 9_500,
  // With a check that nothing has changed since a copy of a cluster.
  serve: 4_400,
  console: 34_000,
  mcp: 600,
  operations: 13_000,
  operate: 5_400,
  backup: 5_500,
  import: 12_500,
  // Loading by several nodes: positions of partitions, changes of them, whether all have caught up, checks of takeovers.
  engine: 5_400,
  surveys: 1_500,
  "early-access": 500,
  experiments: 5_000,
  dashboards: 1_700,
  flags: 19_000,
  "flag-objects": 1_500,
  cohorts: 1_500,
  events: 16_500,
  // With persons as rows in PostgreSQL, and their cache.
  persons: 9_550,
  ingestion: 3_300,
  accounts: 7_300,
  http: 4_700,
  // Observing the leases of several engines, counts of partitions for heartbeats, and the check of every write.
  cluster: 3_800,
  journal: 3_300,
  rpc: 450,
  config: 700,
  scan: 2_700,
  lib: 4_200,
};

/** Lines by path from the root. */
function readSizes(folders: string): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const file of new Bun.Glob(`${folders}/**/*.{ts,tsx}`).scanSync({ cwd: root }))
    if (!file.includes("node_modules") && !file.endsWith(".d.ts"))
      sizes.set(file, readFileSync(join(root, file), "utf8").split("\n").length - 1);
  return sizes;
}

/** Files above the limit. */
function tooLong(sizes: ReadonlyMap<string, number>): string[] {
  return [...sizes]
    .filter(([file, lines]) => lines > (longer[file] ?? fileLinesMax))
    .map(([file, lines]) => `${file}: ${lines} lines`);
}

/** Lines by module; files directly in `src` belong to none. */
function byModule(sizes: ReadonlyMap<string, number>): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [file, lines] of sizes) {
    const [top, folder, more] = file.split("/");
    const module = top === "cli" ? "cli" : more === undefined ? undefined : folder!;
    if (module !== undefined) sums.set(module, (sums.get(module) ?? 0) + lines);
  }
  return sums;
}

test(`files have at most ${fileLinesMax} lines`, () => {
  expect(tooLong(readSizes("{src,cli,test}"))).toEqual([]);
});

test("modules stay within their budget of lines, and each has one", () => {
  const over = [...byModule(readSizes("{src,cli}"))]
    .filter(([module, lines]) => !(lines <= moduleLinesMax[module]!))
    .map(([module, lines]) => `${module}: ${lines} of ${moduleLinesMax[module]} lines`);
  expect(over).toEqual([]);
});

test("a long file and the lines of a module are found", () => {
  const sizes = new Map([
    ["src/flags/a.ts", 451],
    ["src/flags/b/c.ts", 450],
    ["cli/main.ts", 10],
    ["src/log.ts", 10],
  ]);
  expect(tooLong(sizes)).toEqual(["src/flags/a.ts: 451 lines"]);
  expect(Object.fromEntries(byModule(sizes))).toEqual({ flags: 901, cli: 10 });
});
