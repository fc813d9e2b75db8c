import { describe, expect, test } from "bun:test";
import { evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import { planHashKeyOverrides } from "../../../src/flags/evaluate/hash-key-overrides.ts";
import type { EvaluationRequest, FlagSelection } from "../../../src/flags/evaluate/model.ts";
import { detectRuntime, type RuntimeHints } from "../../../src/flags/evaluate/selection.ts";
import { dependsOn, flag, requestFor, when } from "../make.ts";

const set = compileFlagSet(
  [
    flag(1, "all", when([])),
    flag(2, "client", when([]), { evaluationRuntime: "client" }),
    flag(3, "server", when([]), { evaluationRuntime: "server" }),
    flag(4, "null", when([]), { evaluationRuntime: null }),
    flag(5, "odd", when([]), { evaluationRuntime: "edge" }),
    flag(6, "tagged", when([]), { evaluationTags: ["app", "web"] }),
    flag(7, "survey-targeting-1", when([])),
    flag(8, "needs-server", when([dependsOn("3", false)])),
    flag(9, "needs-needs", when([dependsOn("8")])),
    flag(10, "asleep", when([]), { active: false }),
  ],
  [],
  [],
);

function keys(selection: FlagSelection | undefined): string {
  return [...evaluate(set, requestFor("u", { selection })).results.keys()].sort().join(" ");
}

describe("a selection keeps", () => {
  const everything = "all client needs-needs needs-server null odd server survey-targeting-1 tagged";
  const cases: [string, FlagSelection | undefined, string][] = [
    ["everything by default", undefined, everything],
    ["everything when empty", { flagKeys: [], contexts: [], runtime: null }, everything],
    ["everything for runtime all", { runtime: "all" }, everything],
    [
      "flags of the client",
      { runtime: "client" },
      "all client needs-needs needs-server null odd survey-targeting-1 tagged",
    ],
    [
      "flags of the server",
      { runtime: "server" },
      "all needs-needs needs-server null odd server survey-targeting-1 tagged",
    ],
    [
      "flags of any runtime when it is not known",
      { runtime: "unknown" },
      "all needs-needs needs-server null odd survey-targeting-1 tagged",
    ],
    ["one context in common", { contexts: ["web", "x"] }, everything],
    [
      "untagged flags for other contexts",
      { contexts: ["x"] },
      "all client needs-needs needs-server null odd server survey-targeting-1",
    ],
    ["flags of surveys", { surveysOnly: true }, "survey-targeting-1"],
    ["flags that were asked for", { flagKeys: ["all", "nothing", "asleep"] }, "all"],
    ["of any runtime, where none is named", { flagKeys: ["client", "server"] }, "client server"],
    ["of any runtime, for runtime all", { flagKeys: ["client", "server"], runtime: "all" }, "client server"],
    ["of any runtime, for no runtime", { flagKeys: ["client", "server"], runtime: null }, "client server"],
    ["with tags, where no context is named", { flagKeys: ["all", "tagged"], contexts: [] }, "all tagged"],
    ["and what they depend on", { flagKeys: ["needs-needs"] }, "needs-needs needs-server server"],
  ];
  for (const [name, selection, expected] of cases) test(name, () => expect(keys(selection)).toBe(expected));

  test("a dependency that is left out counts as off", () => {
    const isEnabled = (selection: FlagSelection) =>
      evaluate(set, requestFor("u", { selection })).results.get("needs-needs")!.enabled;
    expect(isEnabled({ runtime: "server" })).toBe(false);
    expect(isEnabled({ runtime: "client" })).toBe(true);
  });
});

describe("runtime of a request", () => {
  const cases: [string, RuntimeHints, string][] = [
    ["stated", { stated: "server", userAgent: "Mozilla/5.0" }, "server"],
    ["stated all", { stated: "all" }, "all"],
    ["stated wrongly", { stated: "edge", userAgent: "Mozilla/5.0" }, "client"],
    ["browser", { userAgent: "Mozilla/5.0 (X11)" }, "client"],
    ["node", { userAgent: "posthog-node/5.70.0" }, "server"],
    ["python", { userAgent: "posthog-python/7.53.0" }, "server"],
    ["rust", { userAgent: "posthog-rs/0.21.0" }, "server"],
    ["ruby, which writes no slash here", { userAgent: "posthog-ruby3.3.2" }, "server"],
    ["an instrumented MCP server", { userAgent: "posthog-python-mcp/7.91.1" }, "server"],
    ["elixir, whose HTTP client names itself", { userAgent: "req/0.5.15" }, "server"],
    ["another library's name", { userAgent: "posthog-rubyist/1.0" }, "unknown"],
    ["curl", { userAgent: "curl/8.1" }, "server"],
    ["requests", { userAgent: "python-requests/2.3" }, "server"],
    ["android", { userAgent: "posthog-android/3.1" }, "client"],
    ["name elsewhere", { userAgent: "my posthog-node/5" }, "unknown"],
    ["browser headers", { userAgent: "custom", hasBrowserHeaders: true }, "client"],
    ["nothing", {}, "unknown"],
    ["no agent", { userAgent: null }, "unknown"],
  ];
  for (const [name, hints, runtime] of cases)
    test(name, () => expect(detectRuntime(hints)).toBe(runtime as never));
});

describe("experience continuity", () => {
  const continuing = compileFlagSet(
    [
      flag(1, "stays", when([], 50), { ensureExperienceContinuity: true }),
      flag(2, "plain", when([], 50)),
      flag(3, "asleep", when([], 50), { ensureExperienceContinuity: true, active: false }),
    ],
    [],
    [],
  );
  const ids = Array.from({ length: 50 }, (_, i) => `anon-${i}`);
  const values = (key: string, requests: EvaluationRequest[]) =>
    requests.map((request) => evaluate(continuing, request).results.get(key)!.enabled);
  const asAnonymous = ids.map((id) => requestFor(id));

  test("the former id decides for continuity flags only", () => {
    const identified = ids.map((id) => requestFor("user", { anonDistinctId: id }));
    expect(values("stays", identified)).toEqual(values("stays", asAnonymous));
    expect(new Set(values("plain", identified)).size).toBe(1);
  });
  test("a stored override decides, whether continuity is on or not", () => {
    for (const key of ["stays", "plain"]) {
      const overridden = ids.map((id) =>
        requestFor("user", { anonDistinctId: "other", hashKeyOverrides: new Map([[key, id]]) }),
      );
      expect(values(key, overridden)).toEqual(values(key, asAnonymous));
    }
  });
  test("when overrides cannot be read, hashing is plain and the response partial", () => {
    const request = requestFor("user", {
      anonDistinctId: "anon-1",
      hashKeyOverrides: new Map([["stays", "anon-2"]]),
      hashKeyOverridesFailed: true,
    });
    const evaluation = evaluate(continuing, request);
    expect(evaluation.errorsWhileComputing).toBe(true);
    expect(evaluation.results.get("stays")).toEqual(
      evaluate(continuing, requestFor("user")).results.get("stays"),
    );
  });

  const none = new Map<string, string>();
  test("plans an override per person and active continuity flag", () => {
    const persons = [
      { distinctId: "p1", hasPerson: true, isOld: false, overrides: none },
      { distinctId: "p2", hasPerson: true, isOld: false, overrides: new Map([["stays", "older"]]) },
    ];
    expect(planHashKeyOverrides(continuing, persons, "anon")).toEqual({
      toStore: [{ distinctId: "p1", flagKey: "stays", hashKey: "anon" }],
      effective: new Map([["stays", "anon"]]),
    });
  });
  test("the person of the distinct id wins; stored ones count without a former id", () => {
    const persons = [
      { distinctId: "p1", hasPerson: true, isOld: false, overrides: new Map([["stays", "one"]]) },
      {
        distinctId: "p2",
        hasPerson: true,
        isOld: false,
        overrides: new Map([
          ["stays", "two"],
          ["plain", "three"],
        ]),
      },
    ];
    for (const anon of [undefined, null, ""]) {
      expect(planHashKeyOverrides(continuing, persons, anon)).toEqual({
        toStore: [],
        effective: new Map([
          ["stays", "one"],
          ["plain", "three"],
        ]),
      });
    }
  });
  test("without an ID nothing is stored", () =>
    expect(planHashKeyOverrides(continuing, [], "anon")).toEqual({ toStore: [], effective: none }));
  test("an ID without a person gets one, and again to extend it; the former ID itself needs none", () => {
    const anon = { distinctId: "anon", hasPerson: false, isOld: true, overrides: none };
    const toStore = [{ distinctId: "user", flagKey: "stays", hashKey: "anon" }];
    for (const [overrides, isOld, hashKey, planned] of [
      [none, true, "anon", toStore],
      [new Map([["stays", "first"]]), true, "first", toStore],
      [new Map([["stays", "first"]]), false, "first", []],
      [new Map([["plain", "first"]]), false, "anon", toStore],
    ] as const) {
      const ids = [{ distinctId: "user", hasPerson: false, isOld, overrides }, anon];
      const { toStore: found, effective } = planHashKeyOverrides(continuing, ids, "anon");
      expect([found, effective.get("stays")]).toEqual([[...planned], hashKey]);
    }
  });
});
