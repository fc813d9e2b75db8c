import { describe, expect, test } from "bun:test";
import type { PropertyWrites } from "../../../src/persons/identity/automatic-properties.ts";
import { getOperations } from "../../../src/persons/identity/operations.ts";
import { type EventParts, event } from "../support.ts";

const operations = (parts: EventParts) => getOperations(event(parts))!;
const properties = (parts: EventParts) => operations(parts).properties;
/** What lists of writes come to. */
const merged = (lists: readonly PropertyWrites[]) =>
  Object.assign({}, ...lists.map(getValues)) as Record<string, unknown>;
const getValues = ({ members, names, indexes: places }: PropertyWrites) =>
  Object.fromEntries(names.map((name, index) => [name, members.value(places[index]!)]));

describe("automatic properties", () => {
  test("are copied, and kept as the initial ones", () => {
    const { set, setOnce } = properties({ properties: { $browser: "Chrome", utm_source: null, total: 3 } });
    expect(merged(set)).toEqual({ $browser: "Chrome", utm_source: null });
    expect(merged(setOnce)).toEqual({ $initial_browser: "Chrome", $initial_utm_source: null });
  });

  test("give way to what the event sets itself", () => {
    const { set, setOnce } = properties({
      properties: {
        $browser: "Chrome",
        $os: "Linux",
        $set: { $browser: "mine" },
        $set_once: { $initial_os: "mine" },
      },
    });
    expect(merged(set)).toEqual({ $browser: "mine", $os: "Linux" });
    expect(merged([...setOnce].reverse())).toEqual({ $initial_browser: "Chrome", $initial_os: "mine" });
  });

  test("$os_name fills $os when that is missing", () => {
    const without = properties({ properties: { $os_name: "iOS" } });
    expect(merged(without.set)).toEqual({ $os_name: "iOS", $os: "iOS" });
    expect(merged(without.setOnce)).toEqual({ $initial_os_name: "iOS", $initial_os: "iOS" });
    const both = properties({ properties: { $os_name: "iOS", $os: "Darwin" } });
    expect(merged(both.set)).toEqual({ $os_name: "iOS", $os: "Darwin" });
  });

  for (const library of ["posthog-python", "posthog-node", "posthog-go", "posthog-rs", "posthog-edge"]) {
    test(`the host's system of ${library} is not the person's`, () => {
      const sent = { $lib: library, $os: "Linux", $os_name: "Linux", $os_version: "6", $app_version: "2" };
      expect(merged(properties({ properties: sent }).set)).toEqual({ $app_version: "2" });
    });
  }

  for (const name of ["$exception", "$$heatmap", "$groupidentify"]) {
    test(`none from ${name}`, () => {
      const { set, setOnce } = properties({ event: name, properties: { $browser: "Chrome" } });
      expect([...set, ...setOnce]).toEqual([]);
    });
  }

  test("none from a personless event, which has no operations at all", () => {
    expect(
      getOperations(event({ mode: "propertyless", properties: { $browser: "x", $groups: { a: "b" } } })),
    ).toBe(undefined);
  });
});

test("$exception is warned about where it asks for properties, and only there", () => {
  const warned = (sent: Record<string, unknown>) =>
    operations({ event: "$exception", properties: sent }).warnings.map(({ type }) => type);
  expect(warned({ $exception_type: "Error" })).toEqual([]);
  expect(warned({ $set: null, $set_once: null, $unset: null })).toEqual([]);
  for (const name of ["$set", "$set_once", "$unset"])
    expect(warned({ $set: null, $set_once: null, [name]: {} })).toEqual(["set_on_exception"]);
});

describe("merges", () => {
  for (const [parts, merge] of [
    [
      { event: "$identify", properties: { $anon_distinct_id: "b" } },
      { kind: "identify", otherId: "b" },
    ],
    [
      { event: "$create_alias", properties: { alias: "b" } },
      { kind: "alias", otherId: "b" },
    ],
    [
      { event: "$merge_dangerously", properties: { alias: "b" } },
      { kind: "dangerously", otherId: "b" },
    ],
    [
      { event: "$identify", properties: { $anon_distinct_id: 12 } },
      { kind: "identify", otherId: "12" },
    ],
    [{ event: "$identify", properties: { alias: "b" } }, undefined],
    [{ event: "$identify", properties: {} }, undefined],
    [{ event: "$create_alias", properties: { alias: 0 } }, undefined],
    [{ event: "other", properties: { alias: "b", $anon_distinct_id: "b" } }, undefined],
    [
      { event: "$create_alias", properties: { alias: "b\u0000" } },
      { kind: "alias", otherId: "b\ufffd" },
    ],
  ] as const) {
    test(`${parts.event} ${JSON.stringify(parts.properties)}`, () => {
      expect(operations(parts).merge).toEqual(merge);
      expect(operations(parts).warnings).toEqual([]);
    });
  }

  for (const alias of [{ id: 1 }, ["a"], true, "NaN", "DISTINCT_ID", "'None'", " 0 ", '""']) {
    test(`never with ${JSON.stringify(alias)}`, () => {
      const { merge, warnings } = operations({ event: "$create_alias", properties: { alias } });
      expect(merge).toBe(undefined);
      expect(warnings.map(({ type }) => type)).toEqual(["cannot_merge_with_illegal_distinct_id"]);
    });
  }

  for (const alias of ["none of them", "nan", "NULL", "'a", "00", "anonymous-1", '"'])
    test(`but with ${JSON.stringify(alias)}`, () => {
      expect(operations({ event: "$create_alias", properties: { alias } }).merge?.otherId).toBe(alias);
    });

  test("never for an event whose own id is illegal", () => {
    const { merge, warnings } = operations({
      event: "$identify",
      distinctId: "undefined",
      properties: { $anon_distinct_id: "b" },
    });
    expect(merge).toBe(undefined);
    expect(warnings).toMatchObject([
      { type: "cannot_merge_with_illegal_distinct_id", details: { illegalDistinctId: "undefined" } },
    ]);
  });

  test("lists nested too deep to be written out are no danger", () => {
    const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
    expect(operations({ event: "$create_alias", properties: { alias: deep } }).merge).toBe(undefined);
    const named = { event: "$groupidentify", properties: { $group_type: deep, $group_key: deep } };
    expect(operations(named).groupIdentify).toBe(undefined);
  });
});

describe("groups", () => {
  test("types that an event mentions with a key", () => {
    const $groups = { company: "c", team: 7, none: null, empty: "", list: ["x"], flag: true };
    expect(operations({ properties: { $groups } }).groupTypes).toEqual(["company", "team", "flag"]);
    expect(operations({ properties: { $groups: "company" } }).groupTypes).toEqual([]);
  });

  for (const name of ["$groupidentify", "$group_identify"]) {
    test(`${name} names a group; its $set writes no person`, () => {
      const sent = { $group_type: "company", $group_key: 5, $group_set: { size: 1 }, $set: { plan: "x" } };
      const { groupIdentify, properties } = operations({ event: name, properties: sent });
      expect(groupIdentify).toMatchObject({ type: "company", key: "5" });
      expect(groupIdentify!.properties.valueOf("size")).toBe(1);
      expect([...properties.set, ...properties.setOnce, ...properties.unset]).toEqual([]);
    });
  }

  for (const sent of [
    { $group_type: "", $group_key: "k" },
    { $group_type: "t" },
    { $group_type: "t", $group_key: 0 },
    { $group_type: {}, $group_key: "k" },
  ]) {
    test(`without type or key: ${JSON.stringify(sent).slice(0, 60)}`, () => {
      expect(operations({ event: "$groupidentify", properties: sent }).groupIdentify).toBe(undefined);
    });
  }
});
