/** Which known name was probably meant. */

import { expect, test } from "bun:test";
import { closest } from "../../src/console/page/lib/closest.ts";
import { firstDraft } from "../../src/console/page/model/insight.ts";
import { unknownNames, withName } from "../../src/console/page/model/unknown-names.ts";

test("the closest name ignores case, $ and _, and allows two edits", () => {
  const known = ["$browser", "$browser_language", "plan", "signed up"];
  const cases: [string, string | undefined][] = [
    ["browser", "$browser"],
    ["Browser", "$browser"],
    ["$brwoser", "$browser"],
    ["signed_up", "signed up"],
    ["plna", "plan"],
    ["pnla", undefined],
    ["planet", "plan"],
    ["revenue", undefined],
    ["x", undefined],
  ];
  for (const [name, meant] of cases) expect([name, closest(name, known)]).toEqual([name, meant]);
});

test("names are unknown where the known ones are there; a replacement is used everywhere", () => {
  const condition = { key: "browser", type: "event", operator: "exact", value: ["Firefox"] };
  const question = {
    ...firstDraft,
    series: [{ event: "paid", math: "sum", math_property: "browser", properties: [condition] }],
    properties: [condition, { ...condition, type: "person" }],
    breakdown: "browser",
  };
  expect(unknownNames(question, { events: [], properties: [] })).toEqual([]);
  const known = { events: ["paid"], properties: ["$browser"] };
  const found = unknownNames(question, known);
  expect(found).toEqual([{ kind: "property", name: "browser", meant: "$browser" }]);
  const repaired = withName(question, found[0]!, "$browser");
  expect(unknownNames(repaired, known)).toEqual([]);
  expect(repaired.properties[1]).toEqual({ ...condition, type: "person" });
});
