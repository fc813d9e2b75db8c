import { describe, expect, test } from "bun:test";
import type { JournalEvent } from "../../src/journal/entry.ts";
import { personUuid } from "../../src/persons/identity/distinct-ids.ts";
import { event, identify, newYearMicros, secondMicros, set, TestPersons } from "./support.ts";

describe("values of a new person", () => {
  test("uuid of project and id, time of the event, the event that created it, version 0", () => {
    using people = new TestPersons();
    const first = event({ timeMicros: newYearMicros - 400 * 86_400 * secondMicros, historical: true });
    people.apply(first);
    expect(people.person("a")).toMatchObject({
      uuid: "84877a1c-03f2-5cfd-8633-cf112f0d565a",
      createdMicros: first.timeMicros,
      version: 0,
      properties: { $creator_event_uuid: first.uuid },
    });
  });

  test("a merge keeps the survivor's uuid, the earlier time and the higher version plus one", () => {
    using people = new TestPersons();
    const older = event({ distinctId: "anon", timeMicros: newYearMicros });
    const younger = set("user", { plan: "pro" }, { timeMicros: newYearMicros + 5 });
    people.apply(younger, older, set("anon", { n: 1 }), set("anon", { n: 2 }), identify("user", "anon"));
    const { uuid, createdMicros, version, properties } = people.person("anon")!;
    expect({ uuid, createdMicros, version }).toEqual({
      uuid: Bun.randomUUIDv5("1:user", "932979b4-65c3-4424-8467-0b66ec27bc22"),
      createdMicros: newYearMicros,
      version: 3,
    });
    expect(properties.$creator_event_uuid).toBe(younger.uuid);
  });

  test("a repeated value counts no version", () => {
    using people = new TestPersons();
    people.apply(set("a", { tags: ["x", { y: 1 }] }), set("a", { tags: ["x", { y: 1 }] }), event());
    expect(people.person("a")!.version).toBe(0);
  });
});

describe("survey shown", () => {
  test("stores the time of creation, unless the event contains it", () => {
    using people = new TestPersons();
    const shown = event({ event: "survey shown", properties: { $survey_id: "s" } });
    people.apply(shown);
    const date = new Date(shown.timeMicros / 1000).toISOString();
    expect(people.properties("a")).toEqual({ $survey_last_seen_date: date });
    people.apply(event({ event: "survey shown", properties: { $set: { $survey_last_seen_date: "mine" } } }));
    expect(people.properties("a")).toEqual({ $survey_last_seen_date: "mine" });
  });
});

describe("the uuid of a person that a merge makes", () => {
  const personless = (distinctId: string) => event({ distinctId, mode: "propertyless" });
  for (const [name, items, from] of [
    ["comes from the event's id", () => [identify("user", "anon")], "user"],
    [
      "from the other id when only that one had personless events",
      () => [personless("anon"), identify("user", "anon")],
      "anon",
    ],
    [
      "from the event's id when both had",
      () => [personless("anon"), personless("user"), identify("user", "anon")],
      "user",
    ],
    ["and not from events behind the merge", () => [identify("user", "anon"), personless("anon")], "user"],
    [
      "nor from another project's",
      () => [event({ distinctId: "anon", mode: "propertyless", projectId: 2 }), identify("user", "anon")],
      "user",
    ],
  ] as [string, () => JournalEvent[], string][]) {
    test(name, () => {
      using together = new TestPersons();
      together.apply(...items());
      using apart = new TestPersons();
      apart.applyOneByOne(...items());
      for (const people of [together, apart]) {
        expect(people.person("anon")?.uuid).toBe(personUuid(1, from));
        expect(people.person("user")?.uuid).toBe(personUuid(1, from));
      }
    });
  }
});
