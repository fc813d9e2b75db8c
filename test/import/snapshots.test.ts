/** Rows about persons and groups become events with the properties as they were written. */

import { expect, test } from "bun:test";
import { parseJsonString } from "../../src/import/read/json-text.ts";
import { SnapshotStore } from "../../src/import/snapshots.ts";
import { nestingMax } from "../../src/ingestion/payload.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";

/** The events that a person and a group with these properties become, as they are sent. */
function getEvents(text: string): string[] {
  using store = new SnapshotStore(":memory:");
  const properties = parseJsonString(text) as JsonObject;
  const row = { properties, time: undefined, isDeleted: false, version: 1 };
  const place = { file: 0, timestamp: "2024-01-01T00:00:00.000Z" };
  store.add([
    { snapshot: { ...row, kind: "person", id: "p", distinctIds: ["a"], idVersion: 1 }, line: 1, ...place },
    { snapshot: { ...row, kind: "group", type: "company", key: "acme" }, line: 2, ...place },
  ]);
  return [...store.resolve()].flatMap(({ events }) => events.map((event) => event.text));
}

test.each([
  ["integers beyond JavaScript's precision", '{"id":9007199254740993,"ids":[12345678901234567890]}'],
  ["decimals of many digits", '{"a":1.1234567890123456789,"b":{"c":-0.12345678901234567}}'],
  ["numbers beyond the largest one", '{"a":1e400}'],
  ["ordinary values", '{"a":1,"b":"12345678901234567890","c":null,"__proto__":{"d":true}}'],
  ["properties as deep as ingestion accepts", `${'{"a":'.repeat(nestingMax)}1${"}".repeat(nestingMax)}`],
])("%s", (_, text) => {
  const [group, person] = getEvents(text);
  expect(person).toContain(`"$set":${text}`);
  expect(group).toContain(`"$group_set":${text}`);
});
