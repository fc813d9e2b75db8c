/** The scanner is compiled apart from the types of its callers: only this test compares their names. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const source = (file: string) => readFileSync(join(root, file), "utf8");

test("every function that TypeScript calls in the scanner is exported by it", () => {
  const index = source("src/scan/assembly/index.ts");
  const exported = [...index.matchAll(/\{([^}]*)\}/g)].flatMap(([, names]) => names!.match(/\w+/g) ?? []);
  const files = [...new Bun.Glob("src/**/*.ts").scanSync({ cwd: root })];
  const called = files
    .filter((file) => !file.startsWith("src/scan/assembly/"))
    .flatMap((file) => [...source(file).matchAll(/\bprogram\.(\w+)\(/g)].map(([, name]) => name!));
  expect([...new Set(called)].sort()).toEqual(exported.sort());
});
