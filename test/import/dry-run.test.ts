/** What a dry run shows. Source: contract, import 1.8. */

import { expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { getLines, SampleProject } from "./samples.ts";

test("rejections by reason, the first three records as events, and the time span per format", async () => {
  const project = await SampleProject.create();
  const event = (n: number) => ({ event: `e${n}`, distinct_id: "u", timestamp: `2024-05-0${n} 10:00:00` });
  const records = [
    event(4),
    { event: "x", distinct_id: "u" },
    event(2),
    event(5),
    event(3),
    { ...event(1), event: "" },
  ];
  const path = project.write("events.json", getLines(records));
  const { rejections, first_events, time_spans, ...summary } = await project.file(path, "--dry-run");
  expect(summary).toMatchObject({ dry_run: true, read: 6, accepted: 4, rejected: 2 });
  expect(Object.values(rejections!).reduce((sum, n) => sum + n, 0)).toBe(2);
  expect(rejections).toMatchObject({ historical_event_without_timestamp: 1 });
  expect(first_events!.map(({ event }) => event)).toEqual(["e4", "e2", "e5"]);
  expect(first_events![0]).toMatchObject({
    distinct_id: "u",
    timestamp: expect.stringContaining("2024-05-04T10:00:00"),
  });
  expect(time_spans).toEqual({
    events: { first: "2024-05-02T10:00:00.000Z", last: "2024-05-05T10:00:00.000Z" },
  });
  const { stdout } = await flagkeep(["import", path, "--dry-run", "--data-dir", project.dataDir]);
  expect(stdout).toContain("Nothing was loaded. Read 6, would be accepted 4, duplicate 0, rejected 2.");
  expect(stdout).toContain("historical_event_without_timestamp (1 record)");
  expect(stdout).toContain("Times of events: 2024-05-02T10:00:00.000Z to 2024-05-05T10:00:00.000Z.");
  expect(stdout).toContain('"event":"e5"');
  const loaded = await project.file(path);
  expect(Object.keys(loaded)).not.toContain("first_events");
}, 60_000);
