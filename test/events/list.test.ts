import { beforeAll, describe, expect, test } from "bun:test";
import { listedMembers } from "../../src/events/columns.ts";
import { UnknownQueryError } from "../../src/events/event-filters.ts";
import { listEvents } from "../../src/events/list.ts";
import { serializeEvents } from "../../src/events/serialize.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { stores, useStores } from "../support/use-stores.ts";

useStores();
beforeAll(async () => {
  await stores.load([
    {
      event: "first",
      distinctId: "a",
      properties: { plan: "free", seats: 3, $set: { email: "a@acme.com" } },
    },
    { event: "second", distinctId: "b", properties: { plan: "Paid", seats: 30 } },
    { event: "third", distinctId: "a" },
    { event: "nobody", distinctId: "c", mode: "propertyless", properties: { plan: "free" } },
  ]);
  await stores.mirror.follow();
});

async function names(...properties: JsonObject[]): Promise<string[]> {
  const page = await stores.ask((store) =>
    listEvents(store, { projectId: 1, order: "seq", limit: 10, properties }),
  );
  return page.events.map(({ event }) => event);
}

test("events can be skipped; the next page starts after those that were shown", async () => {
  const filter = { projectId: 1, order: "seq" as const, limit: 1 };
  const page = await stores.ask((store) => listEvents(store, { ...filter, offset: 1 }));
  const rest = await stores.ask((store) => listEvents(store, { ...filter, limit: 10, from: page.next }));
  expect([...page.events, ...rest.events].map(({ event }) => event)).toEqual(["second", "third", "nobody"]);
});

test("an answer has the members that are documented, in their order", async () => {
  const page = await stores.ask((store) => listEvents(store, { projectId: 1, order: "seq", limit: 1 }));
  const { text } = serializeEvents(page.events, { personTexts: new Map(), groupTypeIndexes: new Map() });
  expect(Object.keys(JSON.parse(text)[0])).toEqual(listedMembers);
});

describe("events by property", () => {
  for (const [name, filters, expected] of [
    ["none", [], ["first", "second", "third", "nobody"]],
    ["equal, in any case", [{ key: "plan", value: "paid" }], ["second"]],
    ["one of several", [{ key: "plan", value: ["free", "paid"] }], ["first", "second", "nobody"]],
    ["a number written as text", [{ key: "seats", value: "3", operator: "exact" }], ["first"]],
    [
      "joined by AND",
      [
        { key: "plan", value: "free" },
        { key: "seats", operator: "is_set" },
      ],
      ["first"],
    ],
    ["greater", [{ key: "seats", value: 3, operator: "gt" }], ["second"]],
    ["a number that is none", [{ key: "plan", value: 3, operator: "lt" }], []],
    ["between", [{ key: "seats", value: [3, "10"], operator: "between" }], ["first"]],
    [
      "not between, or without the property",
      [{ key: "seats", value: [3, 10], operator: "not_between" }],
      ["second", "third", "nobody"],
    ],
    ["neither, what is no number", [{ key: "plan", value: [3, 10], operator: "not_between" }], ["third"]],
    ["beginning", [{ key: "plan", value: "FR", operator: "starts_with" }], ["first", "nobody"]],
    ["another beginning", [{ key: "plan", value: "fr", operator: "not_starts_with" }], ["second", "third"]],
    ["end", [{ key: "plan", value: "D", operator: "ends_with" }], ["second"]],
    ["another end", [{ key: "plan", value: "d", operator: "not_ends_with" }], ["first", "third", "nobody"]],
    ["a beginning that is no pattern", [{ key: "plan", value: "f.e(", operator: "starts_with" }], []],
    ["one of none", [{ key: "plan", value: [] }], []],
    [
      "none of none",
      [{ key: "plan", value: [], operator: "is_not" }],
      ["first", "second", "third", "nobody"],
    ],
    ["part of none", [{ key: "plan", value: [], operator: "icontains_multi" }], []],
    ["part", [{ key: "plan", value: "RE", operator: "icontains" }], ["first", "nobody"]],
    ["pattern", [{ key: "plan", value: "^P", operator: "regex" }], ["second"]],
    ["text with a NUL", [{ key: "pl\0an", value: "x\0'", operator: "icontains" }], []],
    ["absent", [{ key: "plan", operator: "is_not_set" }], ["third"]],
    [
      "of the person",
      [{ key: "email", value: "acme", operator: "icontains", type: "person" }],
      ["first", "third"],
    ],
    ["of no person", [{ key: "email", operator: "is_not_set", type: "person" }], ["second", "nobody"]],
  ] as [string, JsonObject[], string[]][]) {
    test(name, async () => expect(await names(...filters)).toEqual(expected));
  }

  for (const filter of [
    { key: "plan", value: "x", operator: "resembles" },
    { key: "plan", value: "(", operator: "regex" },
    ...["1e999", "inf", "nan", "", "x", null].map((value) => ({ key: "seats", value, operator: "gt" })),
    ...[[1], [1, 2, 3], [2, 1], ["a", 1], 1, [0, "inf"]].map((value) => ({
      key: "seats",
      value,
      operator: "between",
    })),
    { key: "plan", value: "x", type: "group" },
  ] as JsonObject[]) {
    test(`refuses ${JSON.stringify(filter)}`, () => expect(names(filter)).rejects.toThrow(UnknownQueryError));
  }
});
