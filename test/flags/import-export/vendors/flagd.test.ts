import { expect, test } from "bun:test";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

test("flagd: targeting in JsonLogic, shared evaluators, shares", () => {
  const file = imported(
    json({
      $schema: "https://flagd.dev/schema/v0/flags.json",
      flags: {
        simple: { state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "on" },
        disabled: { state: "DISABLED", variants: { on: true, off: false }, defaultVariant: "on" },
        header: {
          state: "ENABLED",
          variants: { red: "#FF0000", blue: "#0000FF", green: "#00FF00" },
          defaultVariant: "red",
          targeting: {
            if: [
              { $ref: "isTeam" },
              {
                fractional: [
                  ["blue", 25],
                  ["green", 75],
                ],
              },
              { in: [{ var: "country" }, ["de", "fr"]] },
              "blue",
              null,
            ],
          },
        },
        version: {
          state: "ENABLED",
          variants: { true: true, false: false },
          defaultVariant: "false",
          targeting: {
            and: [{ sem_ver: [{ var: "v" }, ">=", "2.0.0"] }, { "!": { "==": [{ var: "os" }, "ios"] } }],
          },
        },
      },
      $evaluators: { isTeam: { ends_with: [{ var: "email" }, "@acme.com"] } },
    }),
  );
  expect([file.product, file.messages]).toEqual(["flagd", []]);
  expect([file.value("simple", "p"), file.flag("disabled").active]).toEqual([true, false]);
  expect(file.shares("header", { email: "x@acme.com" })).toEqual({ blue: near(25), green: near(75) });
  expect(file.value("header", "p", { country: "fr" })).toBe("blue");
  expect(file.value("header", "p")).toBe("red");
  expect(file.payload("header", "p")).toBe("#FF0000");
  expect(file.value("version", "p", { v: "2.1.0" })).toBe(true);
  expect(file.value("version", "p", { v: "2.1.0", os: "ios" })).toBe(false);
  expect(file.value("version", "p", { v: "1.9.0" })).toBe(false);
});
