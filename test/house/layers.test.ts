/**
 * The architecture, as a table: code stands on layers and knows only what stands below it.
 *
 * Type imports count: a type is knowledge too.
 */

import { expect, test } from "bun:test";
import { dirname, join } from "node:path";
import { Glob } from "bun";

/** From top to bottom. A module is a folder of `src`, or a file that lies in `src` itself. */
const layers = [
  "cli",
  "serve",
  "console",
  "mcp",
  "flag-objects",
  "operations",
  "operate",
  "backup",
  "import",
  "engine",
  "surveys",
  "early-access",
  "experiments",
  "dashboards",
  "flags",
  "cohorts",
  "events",
  "persons",
  "ingestion",
  "accounts",
  "http",
  "cluster",
  "journal",
  "rpc",
  "config",
  "lock",
  "log",
  "version",
  "scan",
  "paths",
  "lib",
];

const root = join(import.meta.dir, "../..");

/** What each source file imports from the sources, by path from the root. */
async function readImports(): Promise<Map<string, string[]>> {
  const imports = new Map<string, string[]>();
  for (const file of new Glob("{src,cli}/**/*.{ts,tsx}").scanSync(root)) {
    const text = await Bun.file(join(root, file)).text();
    const named = [...text.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+\.tsx?)"/g)];
    imports.set(
      file,
      named.map(([, target]) => join(dirname(file), target!)),
    );
  }
  return imports;
}

/** The layer a file stands on. */
function getModule(file: string): string {
  const [top, module] = file.split("/");
  return top === "cli" ? "cli" : module!.replace(/\.ts$/, "");
}

/** Groups of nodes that reach each other: the cycles of a graph (Tarjan). */
function cycles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found = [] as string[][];
  const path = [] as string[];
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const visit = (node: string): void => {
    index.set(node, index.size);
    low.set(node, index.get(node)!);
    path.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!index.has(next)) visit(next);
      if (path.includes(next)) low.set(node, Math.min(low.get(node)!, low.get(next)!));
    }
    if (low.get(node) !== index.get(node)) return;
    const group = path.splice(path.indexOf(node));
    if (group.length > 1) found.push(group.sort());
  };
  for (const node of graph.keys()) if (!index.has(node)) visit(node);
  return found;
}

/** The same graph with the files of a folder drawn together. A folder and what lies inside of it are one subject. */
function byFolder(imports: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const folders = new Map<string, Set<string>>();
  for (const [file, targets] of imports) {
    const from = dirname(file);
    const known = folders.get(from) ?? new Set<string>();
    for (const target of targets.map(dirname))
      if (target !== from && !target.startsWith(`${from}/`)) known.add(target);
    folders.set(from, known);
  }
  return new Map([...folders].map(([folder, targets]) => [folder, [...targets]]));
}

const imports = await readImports();

test("every module of the sources belongs to a layer", () => {
  const modules = new Set([...imports.keys()].map(getModule));
  expect([...modules].sort()).toEqual([...layers].sort());
});

test("no import is upward", () => {
  const upward = [...imports].flatMap(([file, targets]) =>
    targets
      .filter((target) => layers.indexOf(getModule(target)) < layers.indexOf(getModule(file)))
      .map((target) => `${file} -> ${target}`),
  );
  expect(upward.sort()).toEqual([]);
});

test("no files import each other in a cycle", () => {
  expect(cycles(imports)).toEqual([]);
});

test("no folders import each other in a cycle", () => {
  expect(cycles(byFolder(imports))).toEqual([]);
});

/** Subfolders that import their folder and are imported by it: the subject is split between both. Add none. */
const entangled = ["cli/commands", "cli/operations", "src/experiments/api", "src/serve/workers"];

/** Subfolders that import files above them and are imported by these. */
function entangledIn(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const up = new Set<string>();
  const down = new Set<string>();
  for (const [file, targets] of imports) {
    const from = dirname(file);
    for (const to of targets.map(dirname)) {
      if (from.startsWith(`${to}/`)) up.add(from);
      if (to.startsWith(`${from}/`)) down.add(to);
    }
  }
  return [...up].filter((folder) => down.has(folder)).sort();
}

test("a subfolder is above or below the files of its folder, not both", () => {
  expect(entangledIn(imports).filter((folder) => !entangled.includes(folder))).toEqual([]);
});

test("a subfolder on both sides of its folder is found", () => {
  const both = new Map([
    ["src/a/one.ts", ["src/a/b/two.ts", "src/a/c/three.ts"]],
    ["src/a/b/two.ts", ["src/a/four.ts"]],
    ["src/a/c/three.ts", ["src/lib/five.ts"]],
  ]);
  expect(entangledIn(both)).toEqual(["src/a/b"]);
});

test("private members are written `private`, not `#`", async () => {
  const marked: string[] = [];
  for (const file of imports.keys()) {
    if (/^\s+(?:readonly |async |static |get |set )*#\w/m.test(await Bun.file(join(root, file)).text()))
      marked.push(file);
  }
  expect(marked).toEqual([]);
});

test("the search for cycles finds them", () => {
  const graph = new Map([
    ["a", ["b", "d"]],
    ["b", ["c"]],
    ["c", ["a", "d"]],
    ["d", []],
  ]);
  expect(cycles(graph)).toEqual([["a", "b", "c"]]);
});
