/** The recipes of CONTRIBUTING.md name files and symbols that exist. */

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const page = await Bun.file(join(root, "CONTRIBUTING.md")).text();
const recipes = page.slice(page.indexOf("\n## Recipes"), page.indexOf("\n## Rules"));

/** "`file` (`symbol`, `symbol`)": the files, each with the symbols that a recipe edits in it. */
const named = [...recipes.matchAll(/`((?:src|cli|test|docs)\/[\w./-]+)`(?:\s+\(((?:`\w+`[,\s]*)+)\))?/g)].map(
  ([, file, symbols]) => ({
    file: file!,
    symbols: [...(symbols ?? "").matchAll(/`(\w+)`/g)].map(([, symbol]) => symbol!),
  }),
);

test("every file of the recipes exists", () => {
  expect(named.length).toBeGreaterThan(20);
  expect(named.map(({ file }) => file).filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test("every symbol of the recipes is declared in its file", async () => {
  const declared = named.flatMap(({ file, symbols }) => symbols.map((symbol) => ({ file, symbol })));
  expect(declared.length).toBeGreaterThan(12);
  const missing: string[] = [];
  for (const { file, symbol } of declared) {
    const source = await Bun.file(join(root, file)).text();
    if (!new RegExp(`(?:(?:const|let|function|class) ${symbol}\\b|^ *${symbol}:)`, "m").test(source))
      missing.push(`${file}: ${symbol}`);
  }
  expect(missing).toEqual([]);
});

test("every make target of the page exists", async () => {
  const makefile = await Bun.file(join(root, "Makefile")).text();
  const targets = new Set([...page.matchAll(/`make ([a-z-]+)/g)].map(([, target]) => target!));
  expect([...targets].filter((target) => !makefile.includes(`\n${target}:`))).toEqual([]);
});
