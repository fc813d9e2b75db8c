/** Suggested names and values: collected from events, limited in number, and values deleted with their person. */

import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JournalItem } from "../../src/journal/entry.ts";
import {
  DefinitionRecorder,
  listEventDefinitions,
  listPropertyDefinitions,
  listPropertyValues,
  projectPropertyDefinitionsMax,
  projectValuesMax,
} from "../../src/persons/event-definitions.ts";
import { openPersons } from "../../src/persons/open.ts";
import { MemberScanner, ParsedMembers } from "../../src/scan/members.ts";
import { ServerProcess, until } from "../support/server.ts";

const page = { limit: 20_000, offset: 0 };

/** Properties come parsed, or as a scanner finds them. */
type Road = "parsed" | "scanned";

function prepared(road: Road) {
  const folder = mkdtempSync(join(tmpdir(), "flagkeep-names-"));
  const path = join(folder, "people.sqlite");
  const db = openPersons(path);
  const scanner = new MemberScanner();
  const clock = { micros: 1_700_000_000_000_000 };
  const take = (
    register: DefinitionRecorder,
    ...events: [event: string, properties?: object, project?: number][]
  ) => {
    const members =
      road === "parsed"
        ? events.map(([, properties = {}]) => new ParsedMembers(properties as Record<string, unknown>))
        : scanner.read(events.map(([, properties = {}]) => Buffer.from(JSON.stringify(properties))));
    register.collect(
      events.map(([event, , projectId = 1], index) => ({
        kind: "event",
        projectId,
        event,
        receivedMicros: clock.micros,
        properties: members[index],
      })) as unknown as JournalItem[],
    );
    register.store();
  };
  const values = (name: string, owner = "event") =>
    listPropertyValues(db, { projectId: 1, owner, name, search: "" });
  const types = (owner: string) =>
    listPropertyDefinitions(db, { projectId: 1, owner, search: "" }, page).names.map(({ name, type }) => [
      name,
      type,
    ]);
  return {
    db,
    take,
    values,
    types,
    clock,
    [Symbol.dispose]: () => {
      db.$client.close();
      rmSync(folder, { recursive: true });
    },
  };
}

describe.each<Road>(["parsed", "scanned"])("%s properties", (road) => {
  test("types are detected, values collected, and both survive a restart", () => {
    using it = prepared(road);
    it.take(new DefinitionRecorder(it.db), [
      "order paid",
      {
        amount: 12.5,
        plan: "pro",
        is_new: true,
        at: "2026-03-04T16:00:01Z",
        tags: ["a"],
        both: 1,
        $set: { mail: "a@b.c" },
      },
    ]);
    const again = new DefinitionRecorder(it.db);
    it.take(again, ["order paid", { plan: "free", both: "x", $set_once: { first: 1 } }], ["other", {}, 2]);
    const company = ($group_set: object) => ({ $group_type: "company", $group_key: "acme", $group_set });
    it.take(
      again,
      ["$groupidentify", company({ size: 7 })],
      // As guidance for migrations writes it.
      ["$group_identify", company({ city: "Berlin" })],
    );
    expect(listEventDefinitions(it.db, 1, "ORDER", page)).toMatchObject({
      count: 1,
      names: [{ name: "order paid" }],
    });
    expect(listEventDefinitions(it.db, 2, "", page).names.map(({ name }) => name)).toEqual(["other"]);
    const plain = it.types("event").filter(([name]) => !String(name).startsWith("$"));
    expect(plain).toEqual([
      ["amount", "Numeric"],
      ["at", "DateTime"],
      ["both", "String"],
      ["is_new", "Boolean"],
      ["plan", "String"],
      ["tags", null],
    ]);
    expect(it.types("person")).toEqual([
      ["first", "Numeric"],
      ["mail", "String"],
    ]);
    expect(it.types("group:company")).toEqual([
      ["city", "String"],
      ["size", "Numeric"],
    ]);
    expect(it.values("plan")).toEqual(["free", "pro"]);
    expect(it.values("is_new")).toEqual([true]);
    expect(it.values("tags")).toEqual([]);
  });

  test("invented names and values are bounded", () => {
    using it = prepared(road);
    const register = new DefinitionRecorder(it.db);
    for (let start = 0; start < 6_000; start += 500) {
      const numbers = Array.from({ length: 500 }, (_, index) => start + index);
      it.take(
        register,
        ...numbers.map((n): [string, Record<string, unknown>] => [
          `event-${n}`,
          { [`property-${2 * n}`]: n, [`property-${2 * n + 1}`]: n, same: n },
        ]),
      );
    }
    it.take(register, ["x".repeat(201), { ["y".repeat(201)]: 1, long: "z".repeat(101) }]);
    for (let n = 0; n < 100; n++)
      it.take(register, ["$groupidentify", { $group_type: `type-${n}`, $group_set: { a: 1 } }]);
    expect(listEventDefinitions(it.db, 1, "", page).count).toBe(5_000);
    expect(listPropertyDefinitions(it.db, { projectId: 1, owner: "event", search: "" }, page).count).toBe(
      10_000,
    );
    expect(it.values("same")).toHaveLength(50);
    expect(it.values("long")).toEqual([]);
    const owners = it.db.$client.query("SELECT count(DISTINCT owner) AS n FROM property_name").get() as {
      n: number;
    };
    expect(owners.n).toBe(32);
    // Also for a register that has not seen them grow.
    const again = new DefinitionRecorder(it.db);
    it.take(again, ["one more", { "one-more": 1, same: "other" }]);
    expect(listEventDefinitions(it.db, 1, "one more", page).count).toBe(0);
    expect(it.values("same")).toHaveLength(50);
  });

  test("names and values of all owners of a project together are bounded", () => {
    using it = prepared(road);
    const register = new DefinitionRecorder(it.db);
    for (let round = 0; round < 6; round++) {
      const $group_set = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`p${n}`, round]));
      for (let type = 0; type < 5; type++)
        it.take(register, ["$groupidentify", { $group_type: `type-${type}`, $group_set }]);
    }
    const count = (table: string) =>
      (it.db.$client.query(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n;
    expect(count("property_name")).toBe(projectPropertyDefinitionsMax);
    expect(count("property_value")).toBe(projectValuesMax);
    // Also for a register that has not seen them grow, and others may continue.
    it.take(new DefinitionRecorder(it.db), ["seen", { other: "x" }], ["seen", { other: "x" }, 2]);
    expect(count("property_name")).toBe(projectPropertyDefinitionsMax + 1);
    expect(count("property_value")).toBe(projectValuesMax + 1);
  });

  test("values are deleted with their person, names are preserved", () => {
    using it = prepared(road);
    const register = new DefinitionRecorder(it.db);
    it.take(register, ["seen", { plan: "pro", $set: { mail: "ann@example.com" } }]);
    register.collect([{ kind: "person_deleted", projectId: 1, details: {} } as unknown as JournalItem]);
    expect([it.values("mail", "person"), it.values("plan")]).toEqual([[], []]);
    expect(it.types("person")).toEqual([["mail", "String"]]);
    it.take(register, ["seen", { plan: "pro", $set: { mail: "bob@example.com" } }]);
    expect([it.values("mail", "person"), it.values("plan")]).toEqual([["bob@example.com"], ["pro"]]);
  });

  test("the day on which a property was last seen is recorded, for any values", () => {
    using it = prepared(road);
    const register = new DefinitionRecorder(it.db);
    const lastSeen = () =>
      listPropertyDefinitions(it.db, { projectId: 1, owner: "event", search: "plan" }, page).names[0]!
        .lastSeenMicros;
    const first = it.clock.micros;
    it.take(register, ["seen", { plan: "pro" }]);
    it.clock.micros += 2 * 86_400_000_000;
    const second = it.clock.micros;
    it.take(register, ["seen", { plan: "pro", other: 1 }]);
    expect(lastSeen()).toBe(second);
    // What comes late from the day before does not hide what comes on the day itself.
    it.clock.micros = first;
    it.take(register, ["seen", { late: "yes" }]);
    it.clock.micros = second;
    it.take(register, ["seen", { late: "yes" }]);
    const late = listPropertyDefinitions(it.db, { projectId: 1, owner: "event", search: "late" }, page).names;
    expect(late).toMatchObject([{ lastSeenMicros: second }]);
  });

  test("a search finds names in any case, in pages", () => {
    using it = prepared(road);
    const names = ["Über uns", "übersetzt", "ÉTÉ", "other"];
    it.take(
      new DefinitionRecorder(it.db),
      ...names.map((name): [string, object] => [name, { [name]: 1, $set: { [name]: 1 } }]),
    );
    const [owners, searches] = [
      ["event", "person"],
      [
        ["ÜBER", "Über uns", "übersetzt"],
        ["été", "ÉTÉ"],
      ],
    ] as const;
    for (const [search, ...found] of searches) {
      const all = listEventDefinitions(it.db, 1, search, page);
      expect([all.names.map(({ name }) => name), all.count]).toEqual([found, found.length]);
      const second = listEventDefinitions(it.db, 1, search, { limit: 1, offset: 1 });
      expect([second.names.map(({ name }) => name), second.count]).toEqual([found.slice(1, 2), found.length]);
      for (const owner of owners) {
        const properties = listPropertyDefinitions(it.db, { projectId: 1, owner, search }, page);
        expect(properties.names.map(({ name }) => name)).toEqual(found);
      }
    }
  });
});

test("the executable stores and returns them", async () => {
  await using server = await ServerProcess.start();
  await server.batch([
    {
      event: "order paid",
      distinct_id: "ann",
      properties: { plan: "pro", text: "<img onerror=x>", $set: { mail: "a@b.c" } },
    },
    {
      event: "$groupidentify",
      distinct_id: "ann",
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 7 } },
    },
  ]);
  const read = async (path: string) => (await server.api(`/api/projects/1/${path}`)).json();
  await until(async () => (await read("event_definitions/")).count === 2, "the names are kept");
  const paths = ["event_definitions/", "property_definitions/", "property_definitions/?type=person"];
  const ids = async () =>
    (await Promise.all(paths.map(read))).flatMap(({ results }) =>
      results.map(({ id }: { id: string }) => id),
    );
  const first = await ids();
  expect(new Set(first).size).toBe(first.length);
  for (const id of first)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(await ids()).toEqual(first);
  expect((await read("property_definitions/?type=person")).results).toMatchObject([
    { name: "mail", property_type: "String" },
  ]);
  expect((await read("property_definitions/?type=group&group_type_index=0")).results).toMatchObject([
    { name: "size", is_numerical: true },
  ]);
  expect((await read("property_definitions/?type=group&group_type_index=4")).count).toBe(0);
  expect(await read("events/values/?key=plan&value=PR")).toEqual([{ name: "pro" }]);
  expect(await read("events/values/?key=text")).toEqual([{ name: "<img onerror=x>" }]);
  expect(await read("persons/values/?key=mail")).toEqual([{ name: "a@b.c" }]);
  for (const path of ["events/values/", "property_definitions/?type=x", "property_definitions/?type=group"]) {
    expect([path, (await server.api(`/api/projects/1/${path}`)).status]).toEqual([path, 400]);
  }
});
