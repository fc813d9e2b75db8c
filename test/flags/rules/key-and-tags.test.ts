import { describe, expect, test } from "bun:test";
import { InvalidFlagError } from "../../../src/flags/rules/errors.ts";
import {
  changedTags,
  checkKeyCharacters,
  keyOfReplaced,
  keyOfRestored,
  type SentTags,
} from "../../../src/flags/rules/key.ts";

function rejection(act: () => unknown): [string, string, string | null] | "accepted" {
  try {
    act();
  } catch (error) {
    if (!(error instanceof InvalidFlagError)) throw error;
    return [error.code, error.message, error.field];
  }
  return "accepted";
}

describe("keys", () => {
  for (const key of ["a b", "a.b", "a/b", "ä", "a:deleted:1", "a\n"]) {
    test(`${JSON.stringify(key)} has a wrong character`, () =>
      expect(rejection(() => checkKeyCharacters(key))).toEqual([
        "invalid_key",
        "Only letters, numbers, hyphens (-) & underscores (_) are allowed.",
        "key",
      ]));
  }
  test("letters, numbers, hyphens and underscores are fine", () =>
    expect(rejection(() => checkKeyCharacters("Beta_2-x"))).toBe("accepted"));

  test("a replaced flag loses its key and may get it back", () => {
    const key = keyOfReplaced("beta", 7);
    expect(key).toBe("beta:deleted:7");
    expect(keyOfRestored(key, 7, () => false)).toBe("beta");
    expect(keyOfRestored(key, 7, (used) => ["beta", "beta-2"].includes(used))).toBe("beta-3");
    const longest = "b".repeat(400);
    expect(keyOfRestored(longest, 7, (used) => used === longest)).toBe(`${"b".repeat(398)}-2`);
    expect(keyOfRestored("beta", 7, () => false)).toBe("beta");
    expect(keyOfRestored("beta:deleted:8", 7, () => false)).toBe("beta:deleted:8");
  });
});

describe("tags", () => {
  const stored = { tags: ["a", "b"], evaluationTags: ["a"] };
  test("are trimmed, lower-cased, unique and sorted", () =>
    expect(changedTags({ tags: [" Zoo ", "zoo", "App", ""] }, stored)).toEqual({
      tags: ["app", "zoo"],
      evaluationTags: [],
    }));
  for (const sent of [{}, { tags: null, evaluation_tags: null, evaluation_contexts: null }]) {
    test(`${JSON.stringify(sent)} leaves them alone`, () =>
      expect(changedTags(sent, stored)).toEqual(stored));
  }
  test("evaluation tags follow the tags", () => {
    expect(changedTags({ evaluation_tags: ["B "] }, stored)).toEqual({
      tags: ["a", "b"],
      evaluationTags: ["b"],
    });
    expect(changedTags({ tags: ["b", "c"] }, stored)).toEqual({ tags: ["b", "c"], evaluationTags: [] });
    expect(changedTags({ tags: ["c"], evaluation_tags: ["c"] }, stored)).toEqual({
      tags: ["c"],
      evaluationTags: ["c"],
    });
  });
  test("evaluation contexts need not be among the tags, and then do not go with them", () => {
    const contexts = (sent: SentTags, before = stored) => changedTags(sent, before).evaluationTags;
    expect(contexts({ evaluation_contexts: [" Web", "web", "app"] })).toEqual(["app", "web"]);
    const independent = { tags: ["a", "b"], evaluationTags: ["a", "web"] };
    expect(contexts({ tags: ["b"] }, independent)).toEqual(["web"]);
    expect(contexts({ evaluation_contexts: [] }, independent)).toEqual([]);
    expect(contexts({ tags: [], evaluation_contexts: ["a", "web"] }, independent)).toEqual(["a", "web"]);
  });
  test("of the two names the changed one applies, the newer one first", () => {
    const independent = { tags: ["a", "b"], evaluationTags: ["a", "web"] };
    const both = (evaluation_tags: string[], evaluation_contexts: string[]) =>
      changedTags({ tags: ["a", "b"], evaluation_tags, evaluation_contexts }, independent).evaluationTags;
    expect(both(["a", "web"], ["a", "web"])).toEqual(["a", "web"]);
    expect(both(["a", "web"], ["app"])).toEqual(["app"]);
    expect(both(["b"], ["a", "web"])).toEqual(["b"]);
    expect(both(["b"], ["app"])).toEqual(["app"]);
  });
  const rejected: [object, string, string, string | null][] = [
    [
      { evaluation_tags: ["X", "a", "y"] },
      "invalid_input",
      "Evaluation tags must be a subset of tags. Invalid evaluation tags: x, y",
      null,
    ],
    [
      { tags: ["b"], evaluation_tags: ["a"] },
      "invalid_input",
      "Evaluation tags must be a subset of tags. Invalid evaluation tags: a",
      null,
    ],
    [{ evaluation_contexts: [1] }, "invalid_input", "Not a valid string.", "evaluation_contexts__0"],
    [{ tags: "a" }, "not_a_list", 'Expected a list of items but got type "str".', "tags"],
    [{ tags: [1] }, "invalid_input", "Not a valid string.", "tags__0"],
    [{ tags: ["a", null] }, "null", "This field may not be null.", "tags__1"],
  ];
  for (const [sent, ...expected] of rejected) {
    test(`${JSON.stringify(sent)} is rejected`, () =>
      expect(rejection(() => changedTags(sent, stored))).toEqual(expected as never));
  }
});
