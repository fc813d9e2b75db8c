import { describe, expect, test } from "bun:test";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

describe("Unleash", () => {
  const exported = {
    features: [
      { name: "demo", description: "A demo", type: "release", project: "default", stale: false },
      { name: "child", description: null },
    ],
    featureStrategies: [
      {
        name: "flexibleRollout",
        featureName: "demo",
        parameters: { groupId: "demo", rollout: "40", stickiness: "default" },
        constraints: [
          {
            contextName: "appName",
            operator: "IN",
            values: ["shop"],
            inverted: false,
            caseInsensitive: false,
          },
        ],
        segments: [1],
        variants: [],
      },
      { name: "userWithId", featureName: "demo", parameters: { userIds: "ann, bob" }, constraints: [] },
      { name: "flexibleRollout", featureName: "child", parameters: { rollout: "100" }, constraints: [] },
    ],
    featureEnvironments: [
      {
        environment: "development",
        featureName: "demo",
        enabled: true,
        variants: [
          { name: "red", weight: 300, weightType: "fix", payload: { type: "json", value: '{"a":1}' } },
          { name: "green", weight: 700, weightType: "variable" },
        ],
      },
      { environment: "development", featureName: "child", enabled: true, variants: [] },
    ],
    segments: [
      {
        id: 1,
        name: "eu",
        constraints: [
          { contextName: "region", operator: "STR_STARTS_WITH", values: ["eu-"], caseInsensitive: true },
        ],
      },
    ],
    featureTags: [{ featureName: "demo", tagType: "simple", tagValue: "web" }],
    dependencies: [{ feature: "child", parent: "demo", enabled: true }],
  };

  test("exports: strategies are a choice, variants their shares, parents are needed", () => {
    const file = imported(json(exported));
    expect([file.product, file.environment, file.messages]).toEqual(["Unleash", "development", []]);
    expect(file.flag("demo")).toMatchObject({ name: "A demo", tags: ["web"] });
    expect(file.shares("demo")).toEqual({ false: near(100) });
    const inEurope = { appName: "shop", region: "EU-west" };
    expect(file.shares("demo", inEurope)).toEqual({ false: near(60), red: near(12), green: near(28) });
    expect(["red", "green"]).toContain(file.value("demo", "ann") as string);
    expect(file.payload("demo", "ann")).toEqual(file.value("demo", "ann") === "red" ? { a: 1 } : null);
    expect([file.value("child", "ann"), file.value("child", "kim")]).toEqual([true, false]);
  });

  test("supported parts; unsupported parts", () => {
    const file = imported(
      json({
        version: 2,
        features: [
          {
            name: "f",
            enabled: true,
            strategies: [
              { name: "default", constraints: [{ contextName: "n", operator: "NUM_EQ", value: "5" }] },
              {
                name: "default",
                constraints: [{ contextName: "v", operator: "SEMVER_GT", value: "1.2.3", inverted: true }],
              },
            ],
          },
          {
            name: "g",
            enabled: true,
            strategies: [{ name: "remoteAddress", parameters: { IPs: "10.0.0.1" } }],
          },
        ],
      }),
    );
    expect(file.value("f", "p", { n: 5, v: "2.0.0" })).toBe(true);
    expect(file.value("f", "p", { n: 6, v: "2.0.0" })).toBe(false);
    expect(file.value("f", "p", { v: "1.0.0" })).toBe(true);
    expect(file.messages[0]).toBe(
      "g, rule 1 (strategy remoteAddress): the strategy remoteAddress has no counterpart",
    );
    expect(file.flag("g").active).toBe(false);
  });
});
