/** The two tables of the contract (import 3): a missing attribute, and a flag without rules, per product. */

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../../src/lib/json/value.ts";
import { foreignImports, json } from "./support.ts";
import { conditionRows } from "./table-rows.ts";

const imported = foreignImports();

describe("a condition for a person without the attribute", () => {
  test.each(conditionRows)("%s", (_, text, without, a, b) => {
    const file = imported(text);
    expect(file.messages).toEqual([]);
    const people: JsonObject[] = [{}, { plan: "a" }, { plan: "b" }];
    const values = people.map((properties) => file.value("f", "p", properties));
    expect(values).toEqual([without, a, b]);
  });
});

describe("a flag without rules", () => {
  const unleashExport = (strategies: object[]) =>
    json({
      features: [{ name: "f" }],
      featureStrategies: strategies,
      featureEnvironments: [{ environment: "production", featureName: "f", enabled: true, variants: [] }],
    });

  test("Unleash without strategies, in both forms of export: on for everyone", () => {
    const ofClients = json({ version: 2, features: [{ name: "f", enabled: true, strategies: [] }] });
    for (const text of [unleashExport([]), ofClients]) {
      const file = imported(text);
      expect([file.messages, file.value("f", "p")]).toEqual([[], true]);
    }
  });

  test("Unleash with all strategies disabled: on for no one, reported", () => {
    const strategy = { name: "default", disabled: true };
    const ofClients = json({ features: [{ name: "f", enabled: true, strategies: [strategy] }] });
    for (const text of [unleashExport([{ ...strategy, featureName: "f" }]), ofClients]) {
      const file = imported(text);
      expect(file.messages).toEqual(["f, strategies: all are disabled, so the flag is off for everyone"]);
      expect(file.value("f", "p")).toBe(false);
    }
  });

  test("LaunchDarkly: its default rule", () => {
    const flag = (variation: number) => ({ on: true, variations: [true, false], fallthrough: { variation } });
    const file = imported(json({ flags: { yes: flag(0), no: flag(1) } }));
    expect([file.value("yes", "p"), file.value("no", "p")]).toEqual([true, false]);
  });

  test("Flagsmith: on, with its value as payload", () => {
    const text = json([
      { name: "f", default_enabled: true, initial_value: "hello", enabled: true, value: "hello" },
    ]);
    const file = imported(text);
    expect([file.value("f", "p"), file.payload("f", "p")]).toEqual([true, "hello"]);
  });

  test("GrowthBook: its default value", () => {
    const features = {
      yes: { defaultValue: true },
      no: { defaultValue: false },
      word: { defaultValue: "blue" },
    };
    const file = imported(json({ features }));
    expect(["yes", "no", "word"].map((key) => file.value(key, "p"))).toEqual([true, false, "blue"]);
  });

  test("Flipt: enabled or not; a variant flag without distribution is off and reported", () => {
    const boolean = (key: string, enabled: boolean) => ({ key, type: "BOOLEAN_FLAG_TYPE", enabled });
    const variant = { key: "v", type: "VARIANT_FLAG_TYPE", enabled: true, variants: [{ key: "x" }] };
    const file = imported(
      json({ namespace: "default", flags: [boolean("yes", true), boolean("no", false), variant] }),
    );
    expect(["yes", "no", "v"].map((key) => file.value(key, "p"))).toEqual([true, false, false]);
    expect(["yes", "no", "v"].map((key) => file.flag(key).active)).toEqual([true, false, false]);
    expect(file.messages[0]).toBe("v, the flag: it has no distribution, so it is off for everyone");
  });

  test("PostHog: off for everyone", () => {
    const file = imported(json({ results: [{ id: 1, key: "f", active: true, filters: { groups: [] } }] }));
    expect(file.value("f", "p")).toBe(false);
  });
});

describe("obstacles", () => {
  test("each has its line, and only the flag that has them is switched off", () => {
    const clause = (op: string, values: unknown[]) => ({ attribute: "plan", op, values });
    const flag = (rules: object[]) => ({
      on: true,
      variations: [true, false],
      fallthrough: { variation: 0 },
      rules,
    });
    const file = imported(
      json({
        flags: {
          good: flag([]),
          bad: flag([
            { variation: 0, clauses: [clause("matches", ["(?=x)"]), clause("like", ["x"])] },
            { variation: 1, clauses: [clause("in", ["a"])] },
            { variation: 1, clauses: [clause("matches", ["("])] },
          ]),
          worse: 7,
        },
      }),
    );
    expect(file.messages.map((line) => line.split(":")[0])).toEqual([
      "bad, rule 1",
      "bad, rule 1",
      "bad, rule 3",
      "worse, the flag",
    ]);
    expect([file.flag("good").active, file.flag("bad").active]).toEqual([true, false]);
  });
});
