/** Files that merge users of a source join persons after all events. Source: contract, import 2.2, 2.11, O1. */

import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { SampleProject } from "./samples.ts";

const amplitude = (id: number, device: string, user?: string) => ({
  event_type: "open",
  device_id: device,
  amplitude_id: id,
  uuid: crypto.randomUUID(),
  event_time: "2024-05-01 10:00:00.000000",
  ...(user === undefined ? {} : { user_id: user }),
});
const merge = (from: number, into: number, time: string | null = "2024-05-02 10:00:00.000000") => ({
  amplitude_id: from,
  merged_amplitude_id: into,
  merge_event_time: time,
  merge_server_time: null,
});

test("Amplitude: ids without a user join the person; two users are never joined", async () => {
  const project = await SampleProject.create();
  const folder = join(project.folder, "amplitude");
  mkdirSync(folder);
  const lines = (records: object[]) => records.map((each) => JSON.stringify(each)).join("\n");
  project.write(
    "amplitude/b.json",
    lines([
      amplitude(1, "d1"),
      amplitude(2, "d2", "anna"),
      amplitude(3, "d3", "bob"),
      amplitude(4, "d4"),
      amplitude(5, "d5"),
      amplitude(6, "d6"),
      amplitude(7, "d7", "carl"),
      amplitude(8, "d3"),
      // A chain from one user to another, by an id without a user.
      amplitude(10, "d10", "dora"),
      amplitude(11, "d11"),
      amplitude(12, "d12", "emil"),
      { ...amplitude(13, ""), device_id: null },
    ]),
  );
  project.write(
    "amplitude/a_merges.json",
    lines([
      merge(1, 2),
      merge(2, 3),
      merge(99, 2),
      merge(4, 98),
      // Two without a user, and from the user to the one without.
      merge(5, 6),
      merge(7, 13),
      merge(7, 13),
      // The device of 8 is bob's.
      merge(8, 7),
      merge(10, 11),
      merge(11, 12),
      merge(4, 7, null),
    ]),
  );
  const wanted = {
    read: 23,
    accepted: 12,
    duplicate: 0,
    rejected: 0,
    left_out: {
      "joined lookup row": 5,
      "merge of two users": 3,
      "merge of unknown ids": 2,
      "merge without a readable time": 1,
    },
  };
  const dry = await project.file(folder, "--dry-run");
  expect(dry).toMatchObject(wanted);
  const summary = await project.file(folder);
  expect(summary).toMatchObject(wanted);
  expect(dry.made).toBe(summary.made);
  expect(await project.persons()).toEqual([
    ["13", "carl", "d7"],
    ["anna", "d1", "d2"],
    ["bob", "d3"],
    ["d10", "d11", "dora"],
    ["d12", "emil"],
    ["d4"],
    ["d5", "d6"],
  ]);
  expect(await project.file(folder)).toMatchObject({ ...wanted, accepted: 0, duplicate: 12, made: 0 });
  expect(await project.persons()).toHaveLength(7);
}, 60_000);

test("Amplitude: --no-link-identities merges nothing and reports it", async () => {
  const project = await SampleProject.create();
  const folder = join(project.folder, "amplitude");
  mkdirSync(folder);
  project.write(
    "amplitude/events.json",
    `${JSON.stringify(amplitude(1, "d1"))}\n${JSON.stringify(amplitude(2, "d2", "anna"))}`,
  );
  project.write("amplitude/merges.json", JSON.stringify(merge(1, 2)));
  expect(await project.file(folder, "--no-link-identities")).toMatchObject({
    read: 3,
    accepted: 2,
    made: 0,
    left_out: { "merge without linking": 1 },
  });
  expect(await project.persons()).toEqual([["anna"], ["d1"]]);
}, 60_000);

test("Heap: user_migrations merge two ids unless both have an identity", async () => {
  const project = await SampleProject.create();
  const folder = join(project.folder, "heap");
  mkdirSync(folder);
  const rows = [1, 2, 3, 4, 5, 6].map((user) => `e${user},${user},s,2024-05-01 10:00:00,e.example,/a`);
  project.write("heap/pageviews.csv", `event_id,user_id,session_id,time,domain,path\n${rows.join("\n")}\n`);
  project.write(
    "heap/users.csv",
    "user_id,identity,joindate\n2,anna,2024-01-01\n3,bob,2024-01-01\n4,,2024-01-01\n6,null,2024-01-01\n",
  );
  project.write(
    "heap/user_migrations.csv",
    "from_user_id,to_user_id,time\n1,2,2024-05-02 10:00:00\n2,3,2024-05-02 10:00:00\n4,5,2024-05-02 10:00:00\n",
  );
  const summary = await project.file(folder);
  expect(summary).toMatchObject({
    read: 13,
    accepted: 6,
    made: 2,
    placeholder_ids: 1,
    left_out: { "joined lookup row": 6, "merge of two users": 1 },
  });
  expect(await project.persons()).toEqual([["anna", "heap:1"], ["bob"], ["heap:4", "heap:5"], ["heap:6"]]);
  expect(await project.file(folder)).toMatchObject({ accepted: 0, made: 0 });
}, 60_000);

test("a placeholder id merges no person, on either side of a row, and is counted", async () => {
  const project = await SampleProject.create();
  const folder = join(project.folder, "amplitude");
  mkdirSync(folder);
  const lines = (records: object[]) => records.map((each) => JSON.stringify(each)).join("\n");
  project.write(
    "amplitude/events.json",
    lines([amplitude(1, "d1"), amplitude(2, "d2", "anna"), amplitude(0, "d3"), amplitude(-1, "d4", "bob")]),
  );
  project.write("amplitude/merges.json", lines([merge(0, 2), merge(1, -1), merge(1, 0)]));
  // Of three rows and of two events.
  const wanted = { accepted: 4, placeholder_ids: 5, left_out: { "merge of a placeholder id": 3 } };
  expect(await project.file(folder, "--dry-run")).toMatchObject(wanted);
  expect(await project.file(folder)).toMatchObject(wanted);
  expect(await project.persons()).toEqual([["anna", "d2"], ["bob", "d4"], ["d1"], ["d3"]]);
}, 60_000);
