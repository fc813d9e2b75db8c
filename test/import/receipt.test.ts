/** The summary of an import says the same before, after and over runs. Source: contract, import 1.8. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { getLines, SampleProject } from "./samples.ts";

const typical = (n: number, user: string, time: string) => ({
  uuid: crypto.randomUUID(),
  event: `e${n}`,
  distinct_id: user,
  timestamp: time,
  properties: { n },
});

test("first and last time and people, of copied, mapped and rejected records", async () => {
  const project = await SampleProject.create();
  const lines = [
    typical(1, "ä,b", "2024-05-01T10:00:00Z"),
    // Of another form and zone.
    typical(2, "b", "2024-05-01T10:30:00.5+02:00"),
    typical(3, "b", "2024-05-02T00:00:00.25Z"),
    typical(4, "c", "2024-05-01T23:59:59Z"),
    { ...typical(5, "d", "never") },
    { event: "plain", distinct_id: 7, timestamp: 1714500000 },
  ];
  const path = project.write("a.ndjson", getLines(lines));
  const wanted = {
    read: 6,
    accepted: 5,
    duplicate: 0,
    rejected: 1,
    people: 4,
    first_time: "2024-04-30T18:00:00.000000Z",
    last_time: "2024-05-02T00:00:00.250000Z",
  };
  const { first_events, rejections, time_spans, ...dry } = await project.file(path, "--dry-run");
  expect(dry).toMatchObject(wanted);
  expect(first_events).toHaveLength(3);
  expect(rejections).toEqual({ ignored_invalid_timestamp: 1 });
  expect(time_spans).toEqual({
    events: { first: "2024-04-30T18:00:00.000Z", last: "2024-05-02T00:00:00.250Z" },
  });
  const real = await project.file(path);
  const comparable = { seconds: 0, events_per_second: 0, dry_run: true, reject_files: [] };
  expect({ ...real, ...comparable }).toEqual({ ...dry, ...comparable });
  expect(await project.file(path)).toMatchObject({ ...wanted, accepted: 0, duplicate: 5 });
}, 60_000);

test("persons and groups count too; without events there is no time", async () => {
  const project = await SampleProject.create();
  const person = { $distinct_id: "p", $properties: { $last_seen: "2024-05-03T00:00:00" } };
  expect(await project.records([person])).toMatchObject({
    first_time: "2024-05-03T00:00:00.000000Z",
    last_time: "2024-05-03T00:00:00.000000Z",
    people: 1,
  });
  const none = await project.records([{ event: "e" }]);
  expect(none).toMatchObject({ rejected: 1, first_time: null, last_time: null, people: 0 });
}, 60_000);

test("a dry run shows events without the links that are rejected", async () => {
  const project = await SampleProject.create();
  const login = (user: string, n: number) => ({
    type: "identify",
    userId: user,
    anonymousId: "d",
    messageId: `m${n}`,
    timestamp: 1714557600 + n,
  });
  const { first_events } = await project.records([login("u1", 1), login("u2", 2)], "--dry-run");
  const devices = first_events!.map(
    ({ properties }) => (properties as Record<string, unknown>).$anon_distinct_id,
  );
  expect(devices).toEqual(["d", undefined]);
}, 60_000);

test("person and group properties over the limit are listed, and their events stay", async () => {
  const project = await SampleProject.create();
  const large = "x".repeat(600 * 1024);
  const eventWith = (n: number, properties: object, more: object = {}) => ({
    ...typical(n, `u${n}`, "2024-05-01T10:00:00Z"),
    properties,
    ...more,
  });
  const lines = [
    eventWith(1, { $set: { large } }),
    eventWith(2, { large }),
    eventWith(
      3,
      { $group_type: "team", $group_key: "a", $group_set: { large } },
      { event: "$groupidentify" },
    ),
    // Mapped, and of both kinds together.
    eventWith(
      4,
      { $set: { a: large.slice(0, 300 * 1024) }, $set_once: { b: large.slice(0, 300 * 1024) } },
      { other: 1 },
    ),
    // The limit counts bytes, not characters.
    eventWith(5, { $set: { large: "é".repeat(300 * 1024) } }, { other: 1 }),
  ];
  const path = project.write("large.ndjson", getLines(lines));
  const wanted = { read: 5, accepted: 5, rejected: 0, people: 5 };
  const warnings = [
    "The person properties of 3 records exceed the limit and are not all stored; see the reject file.",
    "The group properties of 1 record exceed the limit and are not all stored; see the reject file.",
  ];
  expect(await project.file(path, "--dry-run")).toMatchObject({ ...wanted, warnings, reject_files: [] });
  const rejectPath = `${path}.rejected.ndjson`;
  expect(await project.file(path)).toMatchObject({ ...wanted, warnings, reject_files: [rejectPath] });
  const rejects = readFileSync(rejectPath, "utf8").trim().split("\n");
  expect(rejects.map((line) => JSON.parse(line)).map(({ line, reason }) => [line, reason])).toEqual([
    [1, "person_properties_size_violation"],
    [3, "group_properties_size_violation"],
    [4, "person_properties_size_violation"],
    [5, "person_properties_size_violation"],
  ]);
}, 60_000);

test("placeholders are counted in plain events too, copied or mapped", async () => {
  const project = await SampleProject.create();
  const lines = ["null", "(NULL)", "  unknown ", "0-0", "user-null", "nobody", "not_authenticated"].flatMap(
    (id, n) => [
      typical(n, id, "2024-05-01T10:00:00Z"),
      { ...typical(n, id, "2024-05-01T10:00:00Z"), other: 1 },
    ],
  );
  expect(await project.records(lines)).toMatchObject({ accepted: 14, placeholder_ids: 10 });
}, 60_000);
