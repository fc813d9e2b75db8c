/** An exported value is used by another file: dead code otherwise hides from the compiler. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const declaration = /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class) ([\w$]+)/gm;
/** Exports that the compiled WebAssembly module has by name. */
const callsByName = "src/scan/assembly/index.ts";

/** Exported functions, constants and classes of the product that no other file mentions. */
function unusedExports(sources: ReadonlyMap<string, string>): string[] {
  const users = new Map<string, Set<string>>();
  for (const [file, source] of sources)
    for (const word of source.match(/[\w$]+/g) ?? [])
      users.set(word, (users.get(word) ?? new Set()).add(file));
  return [...sources]
    .filter(([file]) => /^(?:src|cli)\//.test(file) && file !== callsByName)
    .flatMap(([file, source]) =>
      [...source.matchAll(declaration)]
        .map(([, name]) => name!)
        .filter((name) => users.get(name)!.size === 1)
        .map((name) => `${file}: ${name}`),
    );
}

test("exports are used by another file", () => {
  const files = ["build.ts", ...new Bun.Glob("{src,cli,test,deploy}/**/*.{ts,tsx}").scanSync({ cwd: root })];
  const own = files.filter((file) => !file.includes("node_modules"));
  expect(unusedExports(new Map(own.map((file) => [file, readFileSync(join(root, file), "utf8")])))).toEqual(
    [],
  );
});

test("an export that only its own file uses is found", () => {
  const sources = new Map([
    [
      "src/a.ts",
      "export const used = 1;\nexport async function alone() {}\nalone();\nexport class Lonely {}",
    ],
    ["src/b.ts", 'import { used } from "./a.ts";\n'],
    ["test/a.test.ts", "export const anything = used;"],
  ]);
  expect(unusedExports(sources)).toEqual(["src/a.ts: alone", "src/a.ts: Lonely"]);
});
