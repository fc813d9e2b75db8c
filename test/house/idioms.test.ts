/** Shorthand that saves lines and costs the reader a second look: none of it is in the code. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");

const idioms: readonly [name: string, pattern: RegExp, instead: string][] = [
  ["a spread object literal", /\.\.\.\{/, "the members themselves"],
  ["a spread array literal", /^\s*\.\.\.\(?\[[^[\]]*\](?: as const\))?,$/m, "the elements themselves"],
  [
    "declarations in a tuple",
    /^\s*(?:const|let) \[[^=]*,[^=]*\] = \[(?!\.\.\.)[^\]]*\];$/m,
    "one declaration per name",
  ],
];

function findIn(pattern: RegExp): string[] {
  return ["src", "cli", "test"].flatMap((folder) =>
    [...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: root })].filter(
      (file) => !file.includes("node_modules") && pattern.test(readFileSync(join(root, file), "utf8")),
    ),
  );
}

test.each(idioms)("no file contains %s", (_name, pattern, instead) => {
  expect(
    findIn(pattern).filter((file) => file !== "test/house/idioms.test.ts"),
    `write ${instead}`,
  ).toEqual([]);
});

test.each([
  ["{ ...{ a, b }, c }", "a spread object literal"],
  ["  ...[a, b],", "a spread array literal"],
  ["  const [a, b] = [1, f(2)];", "declarations in a tuple"],
])("%s is found", (code, name) => {
  expect(idioms.find(([idiom]) => idiom === name)?.[1].test(code)).toBe(true);
});

test("no file contains the marks of a merge", () => {
  const marks = /^(?:<{7} |>{7} )/m;
  const files = [...new Bun.Glob("**/*.{css,json,md,sh,sql,ts,tsx,txt,yaml,yml}").scanSync({ cwd: root })];
  const own = files.filter((file) => !/(?:^|\/)(?:node_modules|dist)\//.test(file));
  expect(own.length).toBeGreaterThan(1_000);
  expect(own.filter((file) => marks.test(readFileSync(join(root, file), "utf8")))).toEqual([]);
  expect(marks.test("a\n<<<<<<< HEAD\n")).toBe(true);
});
