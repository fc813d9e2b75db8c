import { describe, expect, test } from "bun:test";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

describe("Flagsmith", () => {
  test("feature exports", () => {
    const base = { default_enabled: false, is_server_key_only: false, initial_value: null, type: "unicode" };
    const file = imported(
      json([
        { ...base, name: "plain", value: null, enabled: true, multivariate: [] },
        { ...base, name: "limits", value: '{"max":3}', enabled: true, multivariate: [] },
        { ...base, name: "off", value: null, enabled: false, multivariate: [] },
        {
          ...base,
          name: "color",
          value: "blue",
          enabled: true,
          multivariate: [
            { percentage_allocation: 30, default_percentage_allocation: 10, value: "red", type: "unicode" },
          ],
        },
      ]),
    );
    expect([file.product, file.messages]).toEqual(["Flagsmith", []]);
    expect(file.value("plain", "p")).toBe(true);
    expect(file.payload("limits", "p")).toBe('{"max":3}');
    expect(file.flag("off").active).toBe(false);
    expect(file.shares("color")).toEqual({ red: near(30), blue: near(70) });
  });

  test("environment documents: segments by priority, identities first", () => {
    const state = (enabled: boolean, value: unknown, more: object = {}) => ({
      feature: { id: 1, name: "f", type: "STANDARD" },
      enabled,
      feature_state_value: value,
      multivariate_feature_state_values: [],
      ...more,
    });
    const segment = (name: string, priority: number, condition: object, enabled: boolean) => ({
      name,
      rules: [{ type: "ALL", conditions: [], rules: [{ type: "ANY", conditions: [condition], rules: [] }] }],
      feature_states: [state(enabled, null, { feature_segment: { priority } })],
    });
    const file = imported(
      json({
        name: "Production",
        feature_states: [state(false, null)],
        project: {
          segments: [
            segment("pro", 2, { operator: "EQUAL", property_: "plan", value: "pro" }, true),
            segment("old", 1, { operator: "LESS_THAN", property_: "version", value: "2.0.0:semver" }, false),
          ],
        },
        identity_overrides: [{ identifier: "ann", identity_features: [state(true, null)] }],
      }),
    );
    expect(file.messages).toEqual([]);
    expect(file.value("f", "p", { plan: "pro" })).toBe(true);
    expect(file.value("f", "p", { plan: "pro", version: "1.5.0" })).toBe(false);
    expect(file.value("f", "p")).toBe(false);
    expect(file.value("f", "ann", { version: "1.5.0" })).toBe(true);
  });
});
