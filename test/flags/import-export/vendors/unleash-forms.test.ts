/** Unleash's forms of export, and flags that would be for other people than before (contract, import 3: F1, F3). */

import { describe, expect, test } from "bun:test";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

const constraint = (more: object = {}) => ({ contextName: "plan", operator: "IN", values: ["a"], ...more });
/** What clients read. */
const client = (feature: object, more: object = {}) =>
  json({ version: 2, features: [{ name: "f", enabled: true, ...feature }], ...more });
const strategy = (more: object = {}) => ({ name: "default", constraints: [constraint()], ...more });
const rollout = (parameters: object, more: object = {}) => ({ name: "flexibleRollout", parameters, ...more });
/** An export of one environment. */
const exported = (more: object) =>
  json({
    features: [{ name: "f" }],
    featureStrategies: [],
    featureEnvironments: [{ environment: "production", featureName: "f", enabled: true }],
    ...more,
  });

describe("segments", () => {
  const segments = [{ id: 1, name: "eu", constraints: [constraint()] }];
  const forms: [form: string, file: string][] = [
    ["of clients", client({ strategies: [{ name: "default", segments: [1] }] }, { segments })],
    [
      "of an export",
      exported({ featureStrategies: [{ name: "default", featureName: "f", segments: [1] }], segments }),
    ],
    [
      "that an export lists separately",
      exported({
        featureStrategies: [
          { id: "s", strategyName: "default", featureName: "f", environment: "production" },
        ],
        featureStrategySegments: [{ featureStrategyId: "s", segmentId: 1 }],
        segments,
      }),
    ],
  ];
  test.each(forms)("%s", (_, text) => {
    const file = imported(text);
    expect([file.messages, file.value("f", "p", { plan: "a" }), file.value("f", "p")]).toEqual([
      [],
      true,
      false,
    ]);
  });

  test("without constraints everyone is in one; an export that does not contain them is reported", () => {
    const importSegment = (segment: object) =>
      imported(
        client(
          { strategies: [{ name: "default", segments: [1] }] },
          { segments: [{ id: 1, name: "eu", ...segment }] },
        ),
      );
    expect([
      importSegment({ constraints: [] }).messages,
      importSegment({ constraints: [] }).value("f", "p"),
    ]).toEqual([[], true]);
    const named = importSegment({});
    expect(named.messages).toEqual([
      "f, rule 1 (strategy default): the constraints of the segment eu are not in the file",
    ]);
    expect([named.flag("f").active, named.value("f", "p")]).toEqual([false, false]);
  });
});

test("strategies of other environments are not mixed in", () => {
  const strategyIn = (environment: string, values: string[]) => ({
    featureName: "f",
    name: "default",
    environment,
    constraints: [constraint({ values })],
  });
  const state = (environment: string) => ({ environment, featureName: "f", enabled: true });
  const text = exported({
    featureStrategies: [strategyIn("production", ["a"]), strategyIn("development", ["b"])],
    featureEnvironments: [state("production"), state("development")],
  });
  const values = (environment?: string) =>
    ["a", "b"].map((plan) => imported(text, environment).value("f", "p", { plan }));
  expect([values(), values("development")]).toEqual([
    [true, false],
    [false, true],
  ]);
});

test("features of its API have their strategies per environment", () => {
  const environment = (name: string, strategies: object[]) => ({ name, enabled: true, strategies });
  const features = [
    { name: "f", environments: [environment("development", []), environment("production", [strategy()])] },
  ];
  const file = imported(json({ features }));
  expect([file.environment, file.messages]).toEqual(["production", []]);
  expect([file.value("f", "p", { plan: "a" }), file.value("f", "p")]).toEqual([true, false]);
  expect(imported(json({ features }), "development").value("f", "p")).toBe(true);
});

describe("dependencies", () => {
  const parent = { name: "parent", enabled: true, strategies: [strategy()] };
  const child = (dependency: object) => ({
    name: "f",
    enabled: true,
    strategies: [],
    dependencies: [{ feature: "parent", ...dependency }],
  });
  const forms: [form: string, file: string][] = [
    ["of clients", json({ version: 2, features: [child({}), parent] })],
    [
      "of an export",
      exported({
        features: [{ name: "f" }, { name: "parent" }],
        featureStrategies: [{ ...strategy(), featureName: "parent" }],
        featureEnvironments: ["f", "parent"].map((featureName) => ({
          environment: "production",
          featureName,
          enabled: true,
        })),
        dependencies: [{ feature: "f", dependencies: [{ feature: "parent", enabled: true }] }],
      }),
    ],
  ];
  test.each(forms)("%s", (_, text) => {
    const file = imported(text);
    expect(file.messages).toEqual([]);
    expect([file.value("f", "p", { plan: "a" }), file.value("f", "p")]).toEqual([true, false]);
  });

  test("on a parent that is off, on one of its variants, on one that is not in the file", () => {
    const off = imported(json({ version: 2, features: [child({ enabled: false }), parent] }));
    expect([off.value("f", "p", { plan: "a" }), off.value("f", "p")]).toEqual([false, true]);
    const variants = ["red", "green", "blue"].map((name) => ({ name, weight: 1 }));
    const varied = { name: "parent", enabled: true, strategies: [], variants };
    const some = imported(json({ version: 2, features: [child({ variants: ["red", "green"] }), varied] }));
    expect(some.messages).toEqual([]);
    for (const person of ["a", "b", "c", "d", "e", "g"])
      expect(some.value("f", person)).toBe(some.value("parent", person) !== "blue");
    const named = imported(json({ version: 2, features: [child({ variants: "red" }), varied] }));
    expect([named.messages, named.flag("f").active]).toEqual([
      [expect.stringMatching(/"red" .*are not names/)],
      false,
    ]);
    const grandparent = { name: "top", enabled: true, strategies: [] };
    const nested = { ...parent, dependencies: [{ feature: "top" }] };
    const chain = imported(json({ version: 2, features: [child({}), nested, grandparent] }));
    expect([chain.messages, chain.flag("f").active, chain.flag("parent").active]).toEqual([
      ["f, parent flags: the parent flag parent depends on another flag itself"],
      false,
      true,
    ]);
    const missing = imported(json({ version: 2, features: [child({})] }));
    expect([missing.messages, missing.flag("f").active]).toEqual([
      ["f, parent flags: the flag parent is not in the file"],
      false,
    ]);
  });
});

describe("variants", () => {
  const variant = (name: string, weight: number, more: object = {}) => ({ name, weight, ...more });
  test("overrides choose a variant only of those who are enabled; weights are relative", () => {
    const variants = [
      variant("red", 1, { overrides: [{ contextName: "userId", values: ["ann", "bob"] }] }),
      variant("green", 3, { weightType: "fix" }),
    ];
    const file = imported(client({ strategies: [strategy()], variants }));
    expect(file.messages).toEqual([]);
    expect([file.value("f", "ann", { plan: "a" }), file.value("f", "bob", { plan: "a" })]).toEqual([
      "red",
      "red",
    ]);
    expect(file.value("f", "ann")).toBe(false);
    expect(file.shares("f", { plan: "a" })).toEqual({ red: near(25), green: near(75) });
  });

  test("a strategy without variants next to one with them is reported", () => {
    const file = imported(
      client({ strategies: [strategy({ variants: [variant("red", 1000)] }), strategy()] }),
    );
    expect(file.messages).toEqual([
      "f, rule 2 (strategy default): some users get the flag without a variant, and others with one",
    ]);
    expect(file.flag("f").active).toBe(false);
  });
});

describe("percentages", () => {
  test("of which one is missing are for no one, in all clients", () => {
    const file = imported(client({ strategies: [rollout({ stickiness: "default" })] }));
    expect(file.messages).toEqual([
      "f, rule 1 (strategy flexibleRollout): its percentage is missing, so it matches no one",
    ]);
    expect(file.value("f", "p")).toBe(false);
  });

  const rows: [name: string, strategies: object[], reason: RegExp | undefined][] = [
    ["by the user", [rollout({ rollout: "50", stickiness: "userId" })], undefined],
    ["by another field, for everyone", [rollout({ rollout: "100", stickiness: "team" })], undefined],
    ["by another field", [rollout({ rollout: "50", stickiness: "team" })], /bucketed by team/],
    ["at random", [rollout({ rollout: 50, stickiness: "random" })], /bucketed by random/],
    [
      "by session",
      [{ name: "gradualRolloutSessionId", parameters: { percentage: "50" } }],
      /bucketed by sessionId/,
    ],
    [
      "of old clients, at random",
      [{ name: "gradualRolloutRandom", parameters: { percentage: "5" } }],
      /random/,
    ],
    ["that are no numbers", [rollout({ rollout: "many" })], /"?many"? is not a number/],
    [
      "with the same bucketing",
      [rollout({ rollout: "20", groupId: "g" }, strategy()), rollout({ rollout: "50", groupId: "g" })].map(
        (each) => ({ ...each, name: "flexibleRollout" }),
      ),
      undefined,
    ],
    [
      "with independent bucketing",
      [rollout({ rollout: "20", groupId: "g" }), rollout({ rollout: "50", groupId: "h" })],
      /independently of rule 1/,
    ],
  ];
  test.each(rows)("%s", (_, strategies, reason) => {
    const file = imported(client({ strategies }));
    expect(file.messages).toEqual(reason === undefined ? [] : [expect.stringMatching(reason)]);
    expect(file.flag("f").active).toBe(reason === undefined);
  });
});

describe("constraints", () => {
  const value = (more: object, properties: object) =>
    imported(client({ strategies: [strategy({ constraints: [constraint(more)] })] })).value(
      "f",
      "p",
      properties as never,
    );
  test("patterns and texts without regard to case, versions with equality", () => {
    const ignoring = { caseInsensitive: true };
    expect(value({ operator: "REGEX", value: "^A$", ...ignoring }, { plan: "a" })).toBe(true);
    expect(value({ operator: "STR_ENDS_WITH", values: ["LUS"], ...ignoring }, { plan: "plus" })).toBe(true);
    expect(value({ operator: "STR_ENDS_WITH", values: ["LUS"] }, { plan: "plus" })).toBe(false);
    expect(value({ operator: "SEMVER_GTE", value: "1.2.0" }, { plan: "1.2.0" })).toBe(true);
    expect(value({ operator: "SEMVER_LTE", value: "1.2.0" }, { plan: "1.3.0" })).toBe(false);
  });

  const rows: [name: string, constraints: unknown, reason: RegExp][] = [
    [
      "about the current time",
      [constraint({ operator: "DATE_AFTER", value: "2020-01-01T00:00:00Z" })],
      /current time/,
    ],
    ["about networks", [constraint({ operator: "IN_CIDR", values: ["10.0.0.0/8"] })], /IN_CIDR/],
    ["without an attribute", [constraint({ contextName: "" })], /does not name its attribute/],
    ["that are no list", "x", /constraints: "x" is not a list/],
    ["that are no objects", [null], /constraints: null is not an object/],
    ["with values that are no list", [constraint({ values: 5 })], /values: 5 is not a list/],
  ];
  test.each(rows)("%s", (_, constraints, reason) => {
    const file = imported(client({ strategies: [strategy({ constraints })] }));
    expect(file.messages).toEqual([expect.stringMatching(reason)]);
    expect(file.flag("f").active).toBe(false);
  });
});
