import { describe, expect, test } from "bun:test";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

describe("GrowthBook", () => {
  test("what SDKs read: forced values, coverage, experiments", () => {
    const file = imported(
      json({
        features: {
          plain: { defaultValue: true },
          rollout: {
            defaultValue: false,
            rules: [
              { condition: { id: { $in: ["ann"] } }, force: false },
              { force: true, coverage: 0.2, hashAttribute: "id" },
              {
                condition: { $or: [{ country: "de" }, { age: { $gte: 65 } }], beta: { $exists: true } },
                force: true,
              },
            ],
          },
          banner: {
            defaultValue: "none",
            rules: [
              {
                key: "test",
                variations: ["a", "b"],
                weights: [0.3, 0.7],
                coverage: 0.5,
                hashAttribute: "id",
              },
            ],
          },
        },
      }),
    );
    expect([file.product, file.messages]).toEqual(["GrowthBook", []]);
    expect(file.value("plain", "p")).toBe(true);
    expect(file.shares("rollout")).toEqual({ true: near(20), false: near(80) });
    // A user outside of a rule's coverage continues to the next rule.
    expect(file.shares("rollout", { country: "de", beta: 1 })).toEqual({ true: near(100) });
    expect(file.value("rollout", "ann", { country: "de", beta: 1 })).toBe(false);
    expect(file.shares("banner")).toEqual({ a: near(15), b: near(35), none: near(50) });
  });

  test("answers of the API, with values as text", () => {
    const feature = (id: string, more: object) => ({
      id,
      archived: false,
      description: "",
      valueType: "boolean",
      defaultValue: "false",
      tags: ["t"],
      environments: { production: { enabled: true, defaultValue: "false", rules: [], ...more } },
    });
    const file = imported(
      json({
        features: [
          feature("on", {
            rules: [{ type: "force", value: "true", condition: '{"plan":{"$ne":"free"}}', enabled: true }],
          }),
          feature("off", { enabled: false }),
          feature("exp", {
            rules: [{ type: "experiment-ref", experimentId: "e", enabled: true, variations: [] }],
          }),
        ],
      }),
    );
    expect(file.environment).toBe("production");
    expect([file.value("on", "p"), file.value("on", "p", { plan: "free" })]).toEqual([true, false]);
    expect([file.flag("off").active, file.flag("exp").active]).toEqual([false, false]);
    expect(file.messages[0]).toContain("exp, rule 1: a rule of the type experiment-ref");
  });
});
