/** Persons that a source has deleted. Source: contract, import O3. */

import { expect, test } from "bun:test";
import { ServerProcess } from "../support/server.ts";
import { SampleProject } from "./samples.ts";

const person = (
  id: string,
  distinctId: string,
  version: number,
  isDeleted: boolean,
  idVersion = version,
) => ({
  team_id: 7,
  distinct_id: distinctId,
  person_id: id,
  properties: { plan: "pro" },
  person_version: version,
  person_distinct_id_version: idVersion,
  created_at: "2024-01-01T00:00:00Z",
  is_deleted: isDeleted,
});
const event = (distinctId: string) => ({
  uuid: crypto.randomUUID(),
  event: "open",
  distinct_id: distinctId,
  timestamp: "2024-01-02T00:00:00Z",
  properties: {},
  team_id: 7,
});

test("a person that an earlier import created is deleted; its events stay", async () => {
  const project = await SampleProject.create();
  await project.records([
    person("p1", "a", 1, false),
    person("p1", "a2", 1, false),
    person("p2", "b", 1, false),
  ]);
  await project.records([event("a")]);
  expect(await project.persons()).toEqual([["a", "a2"], ["b"]]);
  const rows = [person("p1", "a", 2, true)];
  // A dry run deletes nothing.
  expect(await project.records(rows, "--dry-run")).toMatchObject({
    left_out: { "deleted in the source": 1 },
  });
  expect(await project.persons()).toHaveLength(2);
  expect(await project.records(rows)).toMatchObject({
    left_out: { "deleted in the source": 1 },
    warnings: [],
  });
  expect(await project.persons()).toEqual([["b"]]);
  expect(await project.query("SELECT event FROM events WHERE event = 'open'")).toHaveLength(1);
  // Repeated, there is nothing to do.
  expect(await project.records(rows)).toMatchObject({ accepted: 0, made: 0 });
}, 60_000);

test("a distinct id that was moved to another person is not deleted with the old one", async () => {
  const project = await SampleProject.create();
  await project.records([person("p1", "a", 1, false)]);
  await project.records([person("p1", "a", 9, true, 1), person("p2", "a", 1, false, 2)]);
  expect(await project.persons()).toEqual([["a"]]);
}, 60_000);

test("Mixpanel: $delete deletes the person of an earlier import", async () => {
  const project = await SampleProject.create();
  const profile = {
    $distinct_id: "m1",
    $properties: { $email: "m@example.com", $last_seen: "2024-01-01T00:00:00" },
  };
  await project.records([profile]);
  expect(await project.persons()).toEqual([["m1"]]);
  await project.records([{ ...profile, $delete: true }]);
  expect(await project.persons()).toEqual([]);
}, 60_000);

test("a person with realtime events is left in place and reported", async () => {
  await using server = await ServerProcess.start();
  const project = await SampleProject.create(server.dataDir);
  await project.records([
    person("p1", "a", 1, false),
    person("p1", "a2", 1, false),
    person("p2", "b", 1, false),
  ]);
  // Under another of its ids.
  await server.batch([{ event: "seen", distinct_id: "a2", properties: {} }]);
  await server.batch([{ event: "seen", distinct_id: "live", properties: {} }]);
  const deleted = [person("p1", "a", 2, true), person("p2", "b", 2, true), person("p3", "live", 2, true)];
  expect(await project.records(deleted)).toMatchObject({
    left_out: { "deleted in the source": 3 },
    warnings: ["2 persons that the source has deleted have realtime events: they were left in place."],
  });
  expect(await project.persons()).toEqual([["a", "a2"], ["live"]]);
}, 60_000);

test("versions are compared by all their digits", async () => {
  const project = await SampleProject.create();
  const row = (v: number, version: string) =>
    `{"distinct_id":"a","person_id":"p","properties":{"v":${v}},"created_at":"2024-01-01T00:00:00Z","person_version":${version}}`;
  const versions = [
    row(1, "1714557600000000123"),
    row(2, "1714557600000000125"),
    row(3, "1714557600000000124"),
  ];
  const path = project.write("persons.ndjson", versions.join("\n"));
  expect(await project.file(path)).toMatchObject({ accepted: 1, left_out: { superseded: 2 } });
  const [person] = await project.query("SELECT properties->>'v' AS v FROM persons");
  expect(person).toEqual({ v: "2" });
  expect(await project.file(path)).toMatchObject({ accepted: 0, duplicate: 1 });
}, 60_000);
