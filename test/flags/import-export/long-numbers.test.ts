/** Numbers that JavaScript's do not hold keep their digits in documents: a rounded one would be another user's ID. */

import { expect, test } from "bun:test";
import { differencesBetween } from "../../../src/flags/import-export/difference.ts";
import {
  parseFile,
  readDocument,
  serializeDocument,
} from "../../../src/flags/import-export/read-document.ts";
import { readVendorFile } from "../../../src/flags/import-export/vendors/read-vendor-file.ts";
import { exactNumber } from "../../../src/lib/json/exact.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { person } from "../make.ts";
import { TwoProjects } from "./two-projects.ts";

const digits = "9007199254740993";
const account = exactNumber(digits) as Json;
/** The same to JavaScript. */
const neighbor = "9007199254740992";

test.each(["yaml", "json"] as const)("of a project, as %s", (format) => {
  using projects = new TwoProjects();
  projects.flag(1, "one", {
    filters: {
      groups: [{ properties: [person("account", "exact", [3, account])], rollout_percentage: 100 }],
    },
  });
  projects.cohort(1, "Accounts", {
    properties: { type: "AND", values: [person("account", "exact", [account])] },
  } as JsonObject);
  const document = projects.document(1);
  const text = serializeDocument(document, format);
  expect(text.match(new RegExp(`[- ]${digits}\\b`, "g"))).toHaveLength(2);
  expect(text).not.toContain("rawJSON");
  const read = readDocument(text);
  expect(serializeDocument(read, format)).toBe(text);
  expect(projects.import(read).differences.map(({ name }) => name)).toEqual(["Accounts", "one"]);
  expect(
    serializeDocument(projects.document(2), format).match(new RegExp(`[- ]${digits}\\b`, "g")),
  ).toHaveLength(2);
  expect(projects.import(read).differences).toEqual([]);
  const changed = readDocument(text.replaceAll(digits, neighbor));
  expect(differencesBetween(read, changed).map(({ change, name }) => `${change} ${name}`)).toEqual([
    "updated Accounts",
    "updated one",
  ]);
});

test("in YAML, other integers stay numbers", () => {
  expect(parseFile("a: 5\nb: 0x10\nc: 9007199254740991\nd: [1.5, 1e3]\n7: 0o17")).toEqual({
    a: 5,
    b: 16,
    c: Number.MAX_SAFE_INTEGER,
    d: [1.5, 1000],
    7: 15,
  });
});

const condition = `{"account":{"$in":[${digits}]}}`;
const logic = `{"in":[{"var":"account"},[${digits}]]}`;
test.each([
  [
    "GrowthBook",
    `{"features":{"f":{"defaultValue":false,"rules":[{"condition":${condition},"force":true}]}}}`,
  ],
  [
    "GrowthBook's API",
    `{"features":{"f":{"defaultValue":false,"rules":[{"condition":${JSON.stringify(condition)},"force":true}]}}}`,
  ],
  [
    "LaunchDarkly",
    `{"flags":{"f":{"key":"f","on":true,"variations":[true,false],"offVariation":1,"fallthrough":{"variation":1},
      "rules":[{"variation":0,"clauses":[{"attribute":"account","op":"in","values":[${digits}],"negate":false}]}]}}}`,
  ],
  [
    "flagd",
    `{"flags":{"f":{"state":"ENABLED","variants":{"on":true,"off":false},"defaultVariant":"off",
      "targeting":{"if":[${logic},"on","off"]}}}}`,
  ],
  [
    "GO Feature Flag",
    `f:\n  variations: {on: true, off: false}\n  targeting:\n    - query: '${logic}'\n      variation: on\n  defaultRule: {variation: off}\n`,
  ],
])("in a file of %s", (_, text) => {
  const document = readVendorFile(parseFile(text), undefined)?.document;
  expect(JSON.stringify(document)).toMatch(new RegExp(`\\["?${digits}"?\\]`));
});
