import { expect, test } from "bun:test";
import { foreignImports, near } from "./support.ts";

const imported = foreignImports();

test("GO Feature Flag: queries in both languages, percentages, rollouts over time", () => {
  const file = imported(`
new-admin-access:
  variations: {enabled: true, disabled: false}
  targeting:
    - name: beta
      query: beta eq "true" and (email ew "@acme.com" or not (age lt 18))
      variation: enabled
    - query: '{"==":[{"var":"plan"},"pro"]}'
      percentage: {enabled: 30, disabled: 70}
  defaultRule: {variation: disabled}
banner:
  variations: {A: hello, B: good day, C: 3}
  defaultRule: {percentage: {A: 50, B: 30, C: 20}}
slow:
  variations: {"on": true, "off": false}
  defaultRule:
    progressiveRollout:
      initial: {variation: "off", date: 2026-01-01T00:00:00Z}
      end: {variation: "on", date: 2026-06-01T00:00:00Z}
retired:
  variations: {"on": true, "off": false}
  disable: true
  defaultRule: {variation: "on"}
broken:
  variations: {"on": true, "off": false}
  targeting: [{query: 'a eq "x', variation: "on"}]
  defaultRule: {variation: "off"}
`);
  expect(file.product).toBe("GO Feature Flag");
  expect(file.value("new-admin-access", "p", { beta: "true", email: "x@acme.com" })).toBe(true);
  expect(file.value("new-admin-access", "p", { beta: "true", age: 20 })).toBe(true);
  expect(file.value("new-admin-access", "p", { beta: "true", age: 17 })).toBe(false);
  expect(file.shares("new-admin-access", { plan: "pro" })).toEqual({ true: near(30), false: near(70) });
  expect(file.shares("banner")).toEqual({ hello: near(50), B: near(30), C: near(20) });
  expect(["slow", "retired", "broken"].map((key) => file.flag(key).active)).toEqual([false, false, false]);
  expect(file.messages).toEqual([
    "slow, the default rule: its progressive rollout changes with time, which is not supported",
    "broken, rule 1: its query is invalid: a quotation mark is missing",
  ]);
});
