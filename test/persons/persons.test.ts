import { describe, expect, test } from "bun:test";
import type { JournalEvent } from "../../src/journal/entry.ts";
import { mergedIdsMax } from "../../src/persons/identity/person-rules.ts";
import { alias, event, identify, mergeDangerously, type SeenPerson, set, TestPersons } from "./support.ts";

interface Case {
  name: string;
  items: () => JournalEvent[];
  persons: SeenPerson[];
  warnings?: string[];
}

const anonymous = (ids: string[], properties: Record<string, unknown> = {}) => ({
  ids,
  properties,
  identified: false,
});
const identified = (ids: string[], properties: Record<string, unknown> = {}) => ({
  ids,
  properties,
  identified: true,
});

/** Each case is applied as one batch, and one event a batch with restarts between: the outcome must be the same. */
function results(title: string, cases: Case[]): void {
  describe(title, () => {
    for (const { name, items, persons, warnings = [] } of cases) {
      test(name, () => {
        using together = new TestPersons();
        together.apply(...items());
        expect(together.persons()).toEqual(persons);
        expect(together.warnings()).toEqual(warnings);
        using apart = new TestPersons();
        apart.applyOneByOne(...items());
        expect(apart.persons()).toEqual(persons);
        expect(apart.warnings()).toEqual(warnings);
      });
    }
  });
}

results("an event makes a person", [
  { name: "with its id", items: () => [event()], persons: [anonymous(["a"])] },
  { name: "once per id", items: () => [event(), event()], persons: [anonymous(["a"])] },
  {
    name: "unless it is personless",
    items: () => [event({ mode: "propertyless", properties: { $set: { plan: "pro" } } })],
    persons: [],
  },
  {
    name: "and a personless one leaves the person alone",
    items: () => [
      set("a", { plan: "pro" }),
      event({ mode: "propertyless", properties: { $set: { plan: "x" } } }),
    ],
    persons: [anonymous(["a"], { plan: "pro" })],
  },
]);

results("person properties", [
  {
    name: "$set overwrites, $set_once does not",
    items: () => [
      event({ properties: { $set: { plan: "trial" }, $set_once: { source: "ad" } } }),
      event({ properties: { $set: { plan: "pro" }, $set_once: { source: "mail", city: "Kyiv" } } }),
    ],
    persons: [anonymous(["a"], { plan: "pro", source: "ad", city: "Kyiv" })],
  },
  {
    name: "$set beats $set_once in one event",
    items: () => [event({ properties: { $set: { plan: "pro" }, $set_once: { plan: "trial" } } })],
    persons: [anonymous(["a"], { plan: "pro" })],
  },
  {
    name: "null is a value for $set_once",
    items: () => [set("a", { plan: null }), event({ properties: { $set_once: { plan: "trial" } } })],
    persons: [anonymous(["a"], { plan: null })],
  },
  {
    name: "objects are replaced whole",
    items: () => [set("a", { address: { city: "Lviv", zip: 1 } }), set("a", { address: { city: "Kyiv" } })],
    persons: [anonymous(["a"], { address: { city: "Kyiv" } })],
  },
  {
    name: "$set_once after $set keeps the value, then $unset takes it away",
    items: () => [
      set("a", { plan: "pro", city: "Kyiv" }),
      event({ properties: { $set_once: { plan: "trial" } } }),
      event({ properties: { $unset: ["plan", "unknown"] } }),
    ],
    persons: [anonymous(["a"], { city: "Kyiv" })],
  },
  {
    name: "$unset may be an object, and wins over $set in one event",
    items: () => [event({ properties: { $set: { plan: "pro", city: "Kyiv" }, $unset: { plan: "" } } })],
    persons: [anonymous(["a"], { city: "Kyiv" })],
  },
  {
    name: "$set_once works again after $unset",
    items: () => [
      set("a", { plan: "pro" }),
      event({ properties: { $unset: ["plan"] } }),
      event({ properties: { $set_once: { plan: "trial" } } }),
    ],
    persons: [anonymous(["a"], { plan: "trial" })],
  },
  {
    name: "what is not an object is ignored",
    items: () => [event({ properties: { $set: "plan", $set_once: ["plan"], $unset: "plan" } })],
    persons: [anonymous(["a"])],
  },
  {
    name: "$exception and $$heatmap make a person but write nothing",
    items: () => [
      event({ event: "$exception", properties: { $set: { plan: "pro" }, $browser: "Chrome" } }),
      event({ event: "$$heatmap", properties: { $set: { plan: "pro" } } }),
    ],
    persons: [anonymous(["a"])],
    warnings: ["set_on_exception"],
  },
  {
    name: "realtime events: the last to arrive wins, whatever its time",
    items: () => [set("a", { plan: "pro" }), set("a", { plan: "trial" }, { timeMicros: 1 })],
    persons: [anonymous(["a"], { plan: "trial" })],
  },
  {
    name: "names of object members are properties like others",
    items: () => [
      event({
        properties: JSON.parse('{"$set":{"__proto__":"x","constructor":1,"2":"b","1":"a","toString":null}}'),
      }),
      event({ properties: JSON.parse('{"$set":{"1":"c"},"$set_once":{"hasOwnProperty":2,"__proto__":3}}') }),
    ],
    persons: [
      anonymous(
        ["a"],
        JSON.parse('{"__proto__":"x","constructor":1,"2":"b","1":"c","toString":null,"hasOwnProperty":2}'),
      ),
    ],
  },
  {
    name: "halves of surrogate pairs do not hurt",
    items: () => [set("\ud800", { "\udc00": "\ud801", plan: "\\ud800" }), set("\ud800", { "\udc00": 2 })],
    persons: [anonymous(["\ufffd"], { "\ufffd": 2, plan: "\\ud800" })],
  },
  {
    name: "projects are apart",
    items: () => [set("a", { plan: "pro" }), set("a", { plan: "trial" }, { projectId: 2 })],
    persons: [anonymous(["a"], { plan: "pro" })],
  },
]);

results("merges", [
  {
    name: "neither id has a person: one with both, the target first",
    items: () => [identify("user", "anon", { properties: { $set: { plan: "pro" } } })],
    persons: [identified(["user", "anon"], { plan: "pro" })],
  },
  {
    name: "only the anonymous id has one: the target joins and is listed first",
    items: () => [event({ distinctId: "anon" }), identify("user", "anon")],
    persons: [identified(["user", "anon"])],
  },
  {
    name: "only the target has one: the anonymous id joins behind",
    items: () => [event({ distinctId: "user" }), identify("user", "anon")],
    persons: [identified(["user", "anon"])],
  },
  {
    name: "a plain $identify writes properties and identifies nobody",
    items: () => [event({ event: "$identify", properties: { $set: { plan: "pro" } } })],
    persons: [anonymous(["a"], { plan: "pro" })],
  },
  {
    name: "equal ids: nothing",
    items: () => [identify("a", "a", { properties: { $set: { plan: "pro" } } })],
    persons: [anonymous(["a"], { plan: "pro" })],
  },
  {
    name: "same person: it becomes identified",
    items: () => [
      mergeDangerously("a", "b"),
      identify("a", "b"),
      event({ distinctId: "c" }),
      alias("c", "c"),
      identify("c", "d"),
    ],
    persons: [identified(["a", "b"]), identified(["c", "d"])],
  },
  {
    name: "two persons: folded, the target's values win, then the event's own",
    items: () => [
      set("anon", { plan: "trial", city: "Kyiv", seen: 1 }),
      set("user", { plan: "pro", seen: 2 }),
      identify("user", "anon", {
        properties: { $set: { seen: 3 }, $set_once: { city: "Lviv" }, $unset: ["none"] },
      }),
    ],
    persons: [identified(["user", "anon"], { plan: "pro", city: "Kyiv", seen: 3 })],
  },
  {
    name: "an identified person is not folded: warning, but the target is identified and written",
    items: () => [
      identify("user-1", "anon"),
      event({ distinctId: "user-2" }),
      identify("user-2", "user-1", { properties: { $set: { plan: "pro" } } }),
    ],
    persons: [identified(["user-1", "anon"]), identified(["user-2"], { plan: "pro" })],
    warnings: ["cannot_merge_already_identified"],
  },
  {
    name: "an alias that is identified takes the anonymous person in, and keeps its own values",
    items: () => [
      set("user-1", { plan: "pro" }),
      identify("user-1", "anon"),
      set("b", { plan: "none", city: "Kyiv" }),
      alias("b", "user-1"),
      set("b", { seen: true }),
    ],
    persons: [identified(["user-1", "anon", "b"], { plan: "pro", city: "Kyiv", seen: true })],
  },
  {
    name: "an identified alias that is not its person's main id becomes it",
    items: () => [identify("user-1", "anon"), event({ distinctId: "b" }), alias("b", "anon")],
    persons: [identified(["anon", "user-1", "b"])],
  },
  {
    name: "an alias between two identified persons is refused, and the request's person is written",
    items: () => [
      identify("user-1", "anon-1"),
      identify("user-2", "anon-2"),
      event({
        event: "$create_alias",
        distinctId: "user-2",
        properties: { alias: "user-1", $set: { n: 1 } },
      }),
    ],
    persons: [identified(["user-1", "anon-1"]), identified(["user-2", "anon-2"], { n: 1 })],
    warnings: ["cannot_merge_already_identified"],
  },
  {
    name: "an identified person takes in an alias that is anonymous",
    items: () => [identify("user-1", "anon"), set("b", { plan: "of b" }), alias("user-1", "b")],
    persons: [identified(["b", "user-1", "anon"], { plan: "of b" })],
  },
  {
    name: "an identified target takes an anonymous person",
    items: () => [identify("user", "anon-1"), event({ distinctId: "anon-2" }), identify("user", "anon-2")],
    persons: [identified(["user", "anon-1", "anon-2"])],
  },
  {
    name: "$merge_dangerously folds an identified person",
    items: () => [
      identify("user-1", "anon-1"),
      identify("user-2", "anon-2"),
      mergeDangerously("user-2", "user-1"),
    ],
    persons: [identified(["user-2", "anon-2", "user-1", "anon-1"])],
  },
  {
    name: "$create_alias: the request's person survives with its values, the alias is listed first",
    items: () => [set("a", { plan: "of a" }), set("b", { plan: "of b", city: "Kyiv" }), alias("a", "b")],
    persons: [identified(["b", "a"], { plan: "of a", city: "Kyiv" })],
  },
  {
    name: "an alias that is new is listed first",
    items: () => [event({ distinctId: "anon" }), alias("anon", "user")],
    persons: [identified(["user", "anon"])],
  },
  {
    name: "an alias of unknown ids is listed first",
    items: () => [alias("anon", "user")],
    persons: [identified(["user", "anon"])],
  },
  {
    name: "an alias of the same person becomes the first",
    items: () => [identify("a", "b"), identify("a", "c"), alias("a", "c")],
    persons: [identified(["c", "a", "b"])],
  },
  {
    name: "an alias stays first when an id is identified later",
    items: () => [alias("anon", "user"), identify("other", "anon")],
    persons: [identified(["user", "anon", "other"])],
  },
  {
    name: "a number as alias is its text; no alias, no merge",
    items: () => [alias("a", 7), alias("c", ""), alias("c", null)],
    persons: [identified(["7", "a"]), anonymous(["c"])],
  },
  {
    name: "a chain in one go",
    items: () => [
      set("a", { from: "a", a: 1 }),
      set("b", { from: "b", b: 1 }),
      set("c", { from: "c", c: 1 }),
      identify("b", "a"),
      mergeDangerously("c", "a"),
      event({ distinctId: "a", properties: { $set: { last: true } } }),
    ],
    persons: [identified(["c", "b", "a"], { from: "c", a: 1, b: 1, c: 1, last: true })],
  },
  {
    name: "ids are kept whole, however long: two that begin alike are two persons",
    items: () => [
      set(`${"x".repeat(1_000)}1`, { n: 1 }),
      set(`${"x".repeat(1_000)}2`, { n: 2 }),
      identify("user", `${"x".repeat(1_000)}2`),
    ],
    persons: [
      { ids: [`${"x".repeat(1_000)}1`], properties: { n: 1 }, identified: false },
      identified(["user", `${"x".repeat(1_000)}2`], { n: 2 }),
    ],
  },
]);

test("a person with very many ids is not merged into another one, but others are merged into it", () => {
  using people = new TestPersons();
  const joined = (count: number) =>
    Array.from({ length: count }, (_, index) => mergeDangerously("hub", `id-${index}`));
  people.apply(event({ distinctId: "hub" }), event({ distinctId: "other" }), event({ distinctId: "last" }));
  people.apply(...joined(mergedIdsMax - 1));
  people.apply(mergeDangerously("other", "hub"));
  expect(people.warnings()).toEqual([]);
  expect(people.persons().map(({ ids }) => ids.length)).toEqual([mergedIdsMax + 1, 1]);
  people.apply(mergeDangerously("last", "other"));
  expect(people.warnings()).toEqual(["cannot_merge_too_many_distinct_ids"]);
  people.apply(mergeDangerously("other", "last"));
  expect(people.persons().map(({ ids }) => ids.length)).toEqual([mergedIdsMax + 2]);
});

describe("ids that must not be merged by", () => {
  for (const id of [
    "anonymous",
    "NULL id".slice(0, 4).toLowerCase(),
    " Guest ",
    "'0'",
    '"undefined"',
    "None",
    "",
  ]) {
    test(JSON.stringify(id), () => {
      using people = new TestPersons();
      people.apply(identify("user", id, { properties: { $set: { plan: "pro" } } }));
      expect(people.persons()).toEqual([anonymous(["user"], { plan: "pro" })]);
      expect(people.warnings()).toEqual(["cannot_merge_with_illegal_distinct_id"]);
    });
  }
});
