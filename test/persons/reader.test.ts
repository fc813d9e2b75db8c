import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { openPersons } from "../../src/persons/open.ts";
import { listPersons, searchMatchesMax, searchPersons } from "../../src/persons/search.ts";
import { temporaryFolder } from "../support/server.ts";
import { event, identify, newYearMicros, set, TestPersons } from "./support.ts";

test("a connection keeps no more pages of the file than it may", () => {
  const folder = temporaryFolder();
  const path = join(folder, "people.sqlite");
  const retainedKib = (options: Parameters<typeof openPersons>[1]) => {
    const people = openPersons(path, options);
    const [[size]] = people.$client.query("PRAGMA cache_size").values() as [[number]];
    people.$client.close();
    return -size;
  };
  const MiB = 1024 * 1024;
  expect(retainedKib({ cacheBytes: 16 * MiB })).toBe(16 * 1024);
  expect(retainedKib({ readonly: true, cacheBytes: 4 * MiB })).toBe(4 * 1024);
  expect(retainedKib({})).toBe(128 * 1024);
  expect(retainedKib({ readonly: true })).toBe(32 * 1024);
  rmSync(folder, { recursive: true });
});

describe("the list of persons", () => {
  const list = (people: TestPersons, options: Parameters<typeof listPersons>[2]) => {
    const { persons, hasMore } = listPersons(people.db, 1, options);
    return [persons.map(({ mainDistinctId }) => mainDistinctId), hasMore] as const;
  };

  test("is newest first, in pages", () => {
    using people = new TestPersons();
    people.apply(
      ...[2, 1, 3].map((age) => event({ distinctId: `p${age}`, timeMicros: newYearMicros - age })),
    );
    expect(list(people, {})).toEqual([["p1", "p2", "p3"], false]);
    expect(list(people, { limit: 2 })).toEqual([["p1", "p2"], true]);
    expect(list(people, { limit: 2, offset: 2 })).toEqual([["p3"], false]);
  });

  test("finds parts of names, emails and any distinct id, in any case", () => {
    using people = new TestPersons();
    people.apply(
      set("one", { email: "Ada@Mail.Example" }),
      set("two", { name: "Ольга" }),
      identify("three", "anon-ÄB"),
      set("four", { city: "Adana" }),
      set("five", { email: "ada", name: 7 }, { projectId: 2 }),
    );
    expect(list(people, { search: "ada@" })).toEqual([["one"], false]);
    expect(list(people, { search: "ОЛЬГ" })).toEqual([["two"], false]);
    expect(list(people, { search: "ANON" })).toEqual([["three"], false]);
    for (const search of ["ÄB", "äb", "Äb", "n-ä"])
      expect(list(people, { search })).toEqual([["three"], false]);
    expect(list(people, { search: "Adana" })).toEqual([[], false]);
    expect(list(people, { search: "o", limit: 2 })).toEqual([["four", "three"], true]);
    expect(list(people, { search: "o", limit: 2, offset: 2 })).toEqual([["two", "one"], false]);
    expect(list(people, { search: "%" })).toEqual([[], false]);
    people.apply(set("one", { email: "new@mail.example" }));
    expect(list(people, { search: "ada@" })).toEqual([[], false]);
  });

  test("is searched the same way in slices, between which others have their turn", async () => {
    using people = new TestPersons();
    const count = 12_000;
    for (let created = 0; created < count; created += 6_000) {
      people.apply(
        ...Array.from({ length: 6_000 }, (_, index) => event({ distinctId: `id-${created + index}` })),
      );
    }
    people.apply(
      set("id-7", { name: "Ada" }),
      set("id-11999", { name: "Ada" }),
      identify("user", "id-11998"),
    );
    let turns = 0;
    const others = setInterval(() => {
      turns += 1;
    }, 0);
    const search = async (text: string, limit?: number) =>
      (await searchPersons(people.db, 1, text, { limit })).persons.map(
        ({ mainDistinctId }) => mainDistinctId,
      );
    expect(await search("ADA")).toEqual(["id-11999", "id-7"]);
    expect(await search("d-1199")).toEqual([
      "id-11999",
      "user",
      ...[7, 6, 5, 4, 3, 2, 1, 0].map((digit) => `id-1199${digit}`),
      "id-1199",
    ]);
    expect(await search("id-", 5_000)).toHaveLength(searchMatchesMax);
    expect(turns).toBeGreaterThan(0);
    clearInterval(others);
  });

  test("calls persons by email, name or username, else by the main id", () => {
    using people = new TestPersons();
    people.apply(
      set("a", { name: "Ada", email: "ada@mail.example", username: "ada" }),
      set("b", { name: "Bob", email: "", username: "bob" }),
      set("c", { email: 5, username: "carl" }),
      identify("d", "anon"),
    );
    expect(["a", "b", "c", "anon"].map((id) => people.name(id))).toEqual([
      "ada@mail.example",
      "Bob",
      "carl",
      "d",
    ]);
  });
});
