/** LaunchDarkly's flags that would be for other people than before (contract, import 3: F1, F3). */

import { describe, expect, test } from "bun:test";
import { foreignImports, json } from "./support.ts";

const imported = foreignImports();

const clause = (more: object) => ({ attribute: "plan", op: "in", values: ["a"], ...more });
const withRule = (rule: object) => ({
  on: true,
  variations: [true, false],
  offVariation: 1,
  fallthrough: { variation: 1 },
  rules: [{ variation: 0, clauses: [clause({})], ...rule }],
});
const rollout = (more: object) => ({
  variation: undefined,
  rollout: { variations: [0, 1].map((variation) => ({ variation, weight: 50_000 })), ...more },
});
const ofSegment = (segment: object) =>
  json({
    flags: { f: withRule({ clauses: [clause({ attribute: "", op: "segmentMatch", values: ["s"] })] }) },
    segments: { s: segment },
  });
const fileWith = (flag: object) => json({ flags: { f: flag } });

describe("is off, with a line", () => {
  const rows: [name: string, file: string, reason: RegExp][] = [
    ["another context kind", fileWith(withRule({ clauses: [clause({ contextKind: "org" })] })), /kind org/],
    [
      "another context kind, negated",
      fileWith(withRule({ clauses: [clause({ contextKind: "org", negate: true })] })),
      /kind org/,
    ],
    ["a member of an attribute", fileWith(withRule({ clauses: [clause({ attribute: "/a/b" })] })), /\/a\/b/],
    ["the kind of the context", fileWith(withRule({ clauses: [clause({ attribute: "kind" })] })), /the kind/],
    [
      "bucketing by another attribute",
      fileWith(withRule(rollout({ bucketBy: "email" }))),
      /bucketed by email/,
    ],
    ["bucketing by another kind", fileWith(withRule(rollout({ contextKind: "org" }))), /kind org/],
    [
      "the default rule by another attribute",
      fileWith({ ...withRule({}), fallthrough: { rollout: rollout({ bucketBy: "/team" }).rollout } }),
      /bucketed by \/team/,
    ],
    [
      "targets of another kind",
      fileWith({ ...withRule({}), contextTargets: [{ contextKind: "org", variation: 0, values: ["x"] }] }),
      /kind org/,
    ],
    [
      "no default rule (an answer with summary=1)",
      fileWith({ ...withRule({}), fallthrough: undefined }),
      /neither/,
    ],
    ["a variation that does not exist", fileWith(withRule({ variation: 7 })), /variation 7/],
    ["a rule that is no object", fileWith({ ...withRule({}), rules: [7] }), /7 is not an object/],
    ["clauses that are no list", fileWith(withRule({ clauses: "x" })), /clauses: "x" is not a list/],
    ["a clause that is no object", fileWith(withRule({ clauses: [5] })), /clauses: 5 is not an object/],
    ["values that are no list", fileWith(withRule({ clauses: [clause({ values: "a" })] })), /values: "a"/],
    [
      "a number that is none",
      fileWith(withRule({ clauses: [clause({ op: "lessThan", values: [true] })] })),
      /number/,
    ],
    [
      "a pattern with lookahead",
      fileWith(withRule({ clauses: [clause({ op: "matches", values: ["(?=a)"] })] })),
      /pattern/,
    ],
    ["a big segment", ofSegment({ unbounded: true }), /big segment/],
    ["a deleted segment", ofSegment({ deleted: true }), /is deleted/],
    ["a part of a segment", ofSegment({ rules: [{ clauses: [], weight: 50_000 }] }), /percentage rollout/],
    [
      "a segment of other contexts",
      ofSegment({ includedContexts: [{ contextKind: "org", values: ["x"] }] }),
      /kind org/,
    ],
    [
      "a segment without other contexts",
      ofSegment({ excludedContexts: [{ contextKind: "org", values: ["x"] }] }),
      /kind org/,
    ],
    [
      "a segment that uses itself",
      ofSegment({ rules: [{ clauses: [clause({ op: "segmentMatch", values: ["s"] })] }] }),
      /itself/,
    ],
    [
      "a prerequisite outside of the file",
      fileWith({ ...withRule({}), prerequisites: [{ key: "g", variation: 0 }] }),
      /flag g/,
    ],
  ];
  test.each(rows)("%s", (_, text, reason) => {
    const file = imported(text);
    expect([file.messages.length, file.messages[0]]).toEqual([1, expect.stringMatching(reason)]);
    expect([file.flag("f").active, file.value("f", "p", { plan: "a" })]).toEqual([false, false]);
  });
});

describe("is on", () => {
  test("a rollout by another attribute that everyone gets", () => {
    const all = { variations: [{ variation: 0, weight: 100_000 }], bucketBy: "email" };
    const file = imported(fileWith(withRule({ variation: undefined, rollout: all })));
    expect([file.messages, file.value("f", "p", { plan: "a" })]).toEqual([[], true]);
  });

  test("a reference with one part, and the user's contexts of a segment", () => {
    const reference = imported(
      fileWith(withRule({ clauses: [clause({ attribute: "/a~1b", contextKind: "user" })] })),
    );
    expect([reference.messages, reference.value("f", "p", { "a/b": "a" })]).toEqual([[], true]);
    const segment = imported(ofSegment({ includedContexts: [{ contextKind: "user", values: ["p"] }] }));
    expect([segment.value("f", "p"), segment.value("f", "q")]).toEqual([true, false]);
  });

  test("weights that leave a rest, which the last variation gets", () => {
    const part = {
      variations: [
        { variation: 1, weight: 0 },
        { variation: 0, weight: 10_000 },
      ],
    };
    const file = imported(fileWith(withRule({ variation: undefined, rollout: part })));
    expect([file.messages, file.value("f", "p", { plan: "a" })]).toEqual([[], true]);
  });

  test("both booleans, and false alone", () => {
    const values = (...wanted: boolean[]) => fileWith(withRule({ clauses: [clause({ values: wanted })] }));
    const value = (text: string, plan: unknown) => imported(text).value("f", "p", { plan } as never);
    expect([value(values(true, false), true), value(values(true, false), false)]).toEqual([true, true]);
    expect([value(values(false), false), value(values(false), true), value(values(false), "x")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

test("flags that are deleted or archived are left out with a line", () => {
  const data = imported(json({ flags: { f: withRule({}), gone: { deleted: true, version: 2 } } }));
  expect([data.messages, data.document.flags.length]).toEqual([["gone, the flag: is deleted"], 1]);
  const flag = (key: string, archived: boolean) => ({
    key,
    archived,
    variations: [{ _id: "a", value: true }],
    environments: { production: { on: true, fallthrough: { variation: 0 } } },
  });
  const api = imported(json({ items: [flag("f", false), flag("old", true)] }));
  expect([api.messages, api.document.flags.length]).toEqual([["old, the flag: is archived"], 1]);
});

test("prerequisites: a parent that is off is never met, whatever its off variation is", () => {
  const parent = { ...withRule({}), on: false, offVariation: 0 };
  const child = (variation: number) => ({
    ...withRule({}),
    prerequisites: [{ key: "parent", variation }],
    fallthrough: { variation: 0 },
  });
  const file = imported(json({ flags: { parent, one: child(0), two: child(1) } }));
  expect([file.value("one", "p"), file.value("two", "p")]).toEqual([false, false]);
  expect(file.messages).toEqual([
    "parent, off variation: everyone was served true; here a disabled flag has no value",
  ]);
});

test("dependents of a flag that is switched off are off, too, with their own line", () => {
  const bad = withRule({ clauses: [clause({ op: "like" })] });
  const needs = (key: string) => ({ ...withRule({}), prerequisites: [{ key, variation: 0 }] });
  const file = imported(
    json({ flags: { grandchild: needs("child"), child: needs("bad"), bad, good: withRule({}) } }),
  );
  expect(file.messages).toEqual([
    "grandchild, prerequisites: it depends on the flag child, which is imported turned off",
    "child, prerequisites: it depends on the flag bad, which is imported turned off",
    'bad, rule 1: the operator "like" has no counterpart',
  ]);
  expect(["grandchild", "child", "bad", "good"].map((key) => file.flag(key).active)).toEqual([
    false,
    false,
    false,
    true,
  ]);
  // They keep their rules, for the operator who turns them on.
  expect(file.value("good", "p", { plan: "a" })).toBe(true);
});
