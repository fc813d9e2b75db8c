/** Persons and groups of the contract's acceptance list for ingestion (section 18). */

import { describe, expect, test } from "bun:test";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import { everythingReadable, getEvents, getPersons, getWarnings, item, unique } from "./support.ts";

useServer();

describe("persons", () => {
  test("18: a personless event creates no person", async () => {
    const id = unique("personless");
    await server.capture(item(id, { properties: { $process_person_profile: false, $set: { a: 1 } } }));
    const [event] = await getEvents(id);
    expect(event!.person).toBeNull();
    expect(await getPersons(id)).toEqual([]);
  });

  test("19: a personless $identify is stored as an anonymous event, with a warning", async () => {
    const id = unique("personless");
    const type = "invalid_event_when_process_person_profile_is_false";
    const before = await getWarnings(type);
    const response = await server.capture(
      item(id, { event: "$identify", properties: { $process_person_profile: false, $set: { a: 1 } } }),
    );
    expect(response.status).toBe(200);
    expect(await getEvents(id)).toMatchObject([{ event: "$identify", person: null }]);
    expect(await getPersons(id)).toEqual([]);
    expect(await getWarnings(type)).toBe(before + 1);
  });

  test("20: anonymous events, then $identify: one person with two ids, earlier events too", async () => {
    const anon = unique("anon");
    const user = unique("user");
    await server.capture(item(anon));
    await server.capture(item(user, { event: "$identify", properties: { $anon_distinct_id: anon } }));
    const persons = await getPersons(user);
    expect(persons).toHaveLength(1);
    expect(persons[0]!.distinct_ids.toSorted()).toEqual([anon, user].toSorted());
    expect((await getEvents(anon))[0]!.person!.uuid).toBe(persons[0]!.uuid);
  });

  test("21: an illegal anonymous id is not merged", async () => {
    const id = unique("user");
    const before = await getWarnings("cannot_merge_with_illegal_distinct_id");
    await server.capture(
      item(id, { event: "$identify", properties: { $anon_distinct_id: "anonymous", $set: { a: 1 } } }),
    );
    const [person] = await getPersons(id);
    expect(person).toMatchObject({ distinct_ids: [id], properties: { a: 1 } });
    expect(await getEvents(id)).toHaveLength(1);
    expect(await getWarnings("cannot_merge_with_illegal_distinct_id")).toBe(before + 1);
  });

  test("22: a second $identify from an identified id is rejected", async () => {
    const anon = unique("anon");
    const user = unique("user");
    const other = unique("other");
    const before = await getWarnings("cannot_merge_already_identified");
    await server.capture(item(anon));
    await server.capture(item(user, { event: "$identify", properties: { $anon_distinct_id: anon } }));
    await server.capture(item(other));
    await server.capture(item(other, { event: "$identify", properties: { $anon_distinct_id: user } }));
    expect((await getPersons(other))[0]!.distinct_ids).toEqual([other]);
    expect(await getWarnings("cannot_merge_already_identified")).toBe(before + 1);
  });

  test("23: $create_alias: the request's person wins, the alias is listed first", async () => {
    const a = unique("a");
    const b = unique("b");
    await server.capture(item(a, { properties: { $set: { key: "of a" } } }));
    await server.capture(item(b, { properties: { $set: { key: "of b", only: "b" } } }));
    await server.capture(item(a, { event: "$create_alias", properties: { alias: b } }));
    const persons = await getPersons(a);
    expect(persons).toHaveLength(1);
    expect(persons[0]).toMatchObject({ distinct_ids: [b, a], properties: { key: "of a", only: "b" } });
  });

  test("24: $set_once does not overwrite $set, and $unset removes a property", async () => {
    const id = unique("set");
    await server.capture(item(id, { properties: { $set: { key: "set" } } }));
    await server.capture(item(id, { properties: { $set_once: { key: "once" } } }));
    expect((await getPersons(id))[0]!.properties.key).toBe("set");
    await server.capture(item(id, { properties: { $unset: ["key"] } }));
    expect((await getPersons(id))[0]!.properties).not.toHaveProperty("key");
  });

  test("a historical event does not overwrite a later value", async () => {
    const id = unique("history");
    await server.capture(item(id, { properties: { $set: { plan: "paid" } } }));
    await everythingReadable();
    const old = {
      event: "$set",
      timestamp: "2020-01-01T00:00:00Z",
      properties: { distinct_id: id, $set: { plan: "trial", since: 2020 } },
    };
    await server.batch([old], { historical_migration: true });
    await until(
      async () => (await server.events(`distinct_id=${id}&historical=true`)).length === 1,
      "it is stored",
    );
    expect((await getPersons(id))[0]!.properties).toMatchObject({ plan: "paid", since: 2020 });
  });
});

describe("groups", () => {
  const groups = async (index: number) => {
    await everythingReadable();
    const response = await server.api(`/api/projects/1/groups/?group_type_index=${index}`);
    return (
      (await response.json()) as {
        results: { group_key: string; group_properties: Record<string, unknown> }[];
      }
    ).results;
  };
  const types = async () => {
    await everythingReadable();
    return (await (await server.api("/api/projects/1/groups_types/")).json()) as {
      group_type: string;
      group_type_index: number;
    }[];
  };

  test("25, 26, 27: types and groups", async () => {
    const grouped = unique("g");
    await server.capture(item(grouped, { properties: { $groups: { company: "acme" } } }));
    const [stored] = await getEvents(grouped);
    expect(stored!.properties).toMatchObject({ $groups: { company: "acme" }, $group_0: "acme" });
    const one = `/api/projects/1/events/${stored!.uuid.toUpperCase()}/`;
    expect(await (await server.api(one)).json()).toEqual(stored);
    for (const unknown of [crypto.randomUUID(), "abc"]) {
      expect((await server.api(`/api/projects/1/events/${unknown}/`)).status).toBe(404);
    }
    expect(await groups(0)).toEqual([]);
    expect(await types()).toMatchObject([{ group_type: "company", group_type_index: 0 }]);
    const identify = (event: string, set: Record<string, unknown>) =>
      server.capture(
        item(unique("g"), {
          event,
          properties: { $group_type: "company", $group_key: "acme", $group_set: set },
        }),
      );
    await identify("$groupidentify", { plan: "free", size: 1 });
    await identify("$group_identify", { plan: "paid" });
    expect(await groups(0)).toMatchObject([
      { group_key: "acme", group_properties: { plan: "paid", size: 1 } },
    ]);
    const last = unique("g");
    for (const type of ["b", "c", "d", "e", "f"]) {
      await server.capture(item(last, { properties: { $groups: { [type]: 1 } } }));
    }
    const columns = (await getEvents(last)).map(({ properties }) =>
      Object.keys(properties).filter((name) => name.startsWith("$group_")),
    );
    expect(columns).toEqual([["$group_1"], ["$group_2"], ["$group_3"], ["$group_4"], ["$group_5"]]);
    expect((await types()).map(({ group_type }) => group_type)).toEqual(["company", "b", "c", "d", "e", "f"]);
    await server.capture(
      item(last, {
        event: "$groupidentify",
        properties: { $group_type: "f", $group_key: "six", $group_set: { plan: "paid" } },
      }),
    );
    await everythingReadable();
    expect(await groups(5)).toMatchObject([{ group_key: "six", group_properties: { plan: "paid" } }]);
  });
});
