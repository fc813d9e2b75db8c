import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { canonicalJson } from "../../src/lib/json/canonical.ts";
import { PropertyNames } from "../../src/persons/identity/property-names.ts";
import { openPersons } from "../../src/persons/open.ts";
import {
  KeySetWriter,
  keySetsMax,
  propertiesJson,
  propertiesWith,
  readProperties,
} from "../../src/persons/property-key-sets.ts";

const folder = mkdtempSync(join(tmpdir(), "flagkeep-lists-"));
const { $client: client } = openPersons(join(folder, "people.sqlite"));
beforeEach(() => client.run("DELETE FROM property_list"));
afterAll(() => {
  client.close();
  rmSync(folder, { recursive: true });
});

const written = (object: Record<string, unknown>, writer = new KeySetWriter(client)) =>
  writer.toJson({
    names: PropertyNames.from(Object.keys(object)),
    texts: Object.values(object).map(canonicalJson),
  });
const lists = () => client.query("SELECT count(*) FROM property_list").values()[0]![0];

test("properties are read as written, with their names in order", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue(), { maxKeys: 20 }), (object) => {
      const stored = written(object);
      expect(propertiesJson(client, stored)).toBe(canonicalJson(JSON.parse(JSON.stringify(object))));
      expect(Object.keys(JSON.parse(propertiesJson(client, stored)))).toEqual(Object.keys(object));
    }),
  );
});

test("a row contains no names, and repeated ones are stored once", () => {
  const agent = "Mozilla/5.0 (X11; Linux x86_64)";
  const object = { $initial_raw_user_agent: agent, $raw_user_agent: agent, $initial_os: "iOS", $os: "Linux" };
  const stored = written(object);
  expect(stored.split("\n").slice(1)).toEqual([JSON.stringify(agent), "", '"iOS"', '"Linux"']);
  expect(JSON.parse(propertiesJson(client, stored))).toEqual(object);
  expect(written({ ...object, $os: "Windows" }).split("\n")[0]).toBe(stored.split("\n")[0]!);
  expect(lists()).toBe(1);
});

test("a list is identified by its names, in any store", () => {
  const stored = written({ a: 1, b: 2 });
  client.run("DELETE FROM property_list");
  expect(written({ a: 3, b: 4 }).split("\n")[0]).toBe(stored.split("\n")[0]!);
});

test("some values are read without the rest, from a row with a list and from one without", () => {
  const object = { $initial_name: "Ann", name: "Ann", age: 5, nothing: null, nested: { a: [1] } };
  const names = ["nested", "name", "email", "age", "nothing", "toString"];
  const values = [{ a: [1] }, "Ann", undefined, 5, null, undefined];
  const json = JSON.stringify(object);
  for (const stored of [written(object), json])
    expect(propertiesWith(client, stored, names)).toEqual({ json, values });
});

test("a row whose list is missing is an error, and never has other properties", () => {
  expect(() => readProperties(client, "AAAAAAAAAAAAAAAA\n1")).toThrow(
    "Property list AAAAAAAAAAAAAAAA does not exist.",
  );
});

describe("what has no list is a JSON object", () => {
  const many = (count: number, text = "n") =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${text}${index}`, index]));

  for (const [name, object] of [
    ["no properties", {}],
    ["very many names", many(201)],
    ["very long names", many(100, "n".repeat(100))],
  ] as const) {
    test(name, () => {
      expect(written(object)).toBe(JSON.stringify(object));
      expect(lists()).toBe(0);
    });
  }

  test("names that differ from those of all lists, once there are many lists", () => {
    const insert = client.query("INSERT INTO property_list VALUES (?, '[]')");
    client.transaction(() => {
      for (let index = 0; index < keySetsMax - 1; index++) insert.run(`list-${index}`);
    })();
    const writer = new KeySetWriter(client);
    expect(written({ a: 1 }, writer)).not.toStartWith("{");
    expect(written({ b: 1 }, writer)).toBe('{"b":1}');
    expect(written({ a: 2 })).not.toStartWith("{");
    expect(lists()).toBe(keySetsMax);
  });

  test("names whose id belongs to another list", () => {
    const [id] = written({ a: 1 }).split("\n");
    client.run("UPDATE property_list SET names = '[\"b\"]' WHERE id = ?", [id!]);
    expect(written({ a: 1 })).toBe('{"a":1}');
  });
});

test("lists of names restart when there are very many", () => {
  const before = PropertyNames.from(["a", "b"]);
  expect(PropertyNames.from(["a", "b"])).toBe(before);
  for (let index = 0; index < 2_000; index++)
    PropertyNames.from(Array.from({ length: 20 }, (_, place) => `${index}-${place}`));
  expect(PropertyNames.from(["a", "b"])).not.toBe(before);
  expect(before.with("c").names).toEqual(["a", "b", "c"]);
});

test("slots of a growing list are never reused", () => {
  const own = PropertyNames.from(Array.from({ length: 101 }, (_, index) => `n${index}`));
  expect(own.isShared).toBe(false);
  const asked = ["n5", "more"];
  expect(own.slotsOf(asked)).toEqual([5, -1]);
  expect(own.with("more")).toBe(own);
  expect(own.slotsOf(asked)).toEqual([5, 101]);
});
