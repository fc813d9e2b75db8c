/** The appliance with a damaged sealed segment: it loads the rest, and says what is lost. */

import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initialisedDirectory, TestAppliance } from "../support/appliance.ts";
import { writeSegment } from "../support/segments.ts";

test("the appliance starts, loads the rest, names file and range, and the doctor says what to do", async () => {
  const directory = await initialisedDirectory();
  const { dataDir } = directory;
  const lines = (first: number, projectId: number) =>
    Array.from({ length: 5 }, (_, n) =>
      JSON.stringify({
        ...{ seq: first + n, project_id: projectId, uuid: Bun.randomUUIDv7(), event: `e${first + n}` },
        ...{ distinct_id: "someone", time: 1.7e15, received: 1.7e15, historical: false, mode: "full" },
        ...{ made_uuid: false, elements_chain: null, properties: {} },
      }),
    );
  const journal = join(dataDir, "journal");
  mkdirSync(journal, { recursive: true, mode: 0o700 });
  writeSegment(journal, "realtime", 1, [lines(1, 1), lines(6, 1)]);
  const bad = writeSegment(journal, "realtime", 11, [lines(11, 1), lines(16, 1), lines(21, 1)]);
  writeSegment(journal, "realtime", 26, [lines(26, 1)]);
  writeFileSync(bad.path, readFileSync(bad.path, "utf8").replace('"event":"e18"', '"event":"e99"'));
  const before = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(before.code).toBe(1);
  expect(before.stdout).toContain("realtime/0000000000000011.ndjson is damaged behind entry 15");
  expect(before.stdout).toContain("put back a copy of the file");

  const appliance = await TestAppliance.start({ directory });
  const events = await appliance.eventsWhenStored(25);
  const lost = [16, 17, 18, 19, 20];
  expect(events.map(({ seq }) => seq)).toEqual(
    Array.from({ length: 30 }, (_, n) => n + 1).filter((seq) => !lost.includes(seq)),
  );
  expect((await appliance.capture({ event: "later", distinct_id: "a" })).status).toBe(200);
  await appliance.eventsWhenStored(26);
  const said = appliance.logs.filter(({ level }) => level === "error");
  expect(said).toMatchObject([
    { msg: expect.stringContaining("people.sqlite was missing") },
    { code: "segment_damaged", msg: expect.stringContaining("16 to 20") },
  ]);
  expect(await appliance.stop()).toBe(0);
  expect(readdirSync(join(journal, "quarantine"))).toEqual([
    "realtime-0000000000000011.ndjson.lost-16-20.damaged",
  ]);
  const after = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(after.code).toBe(0);
  expect(after.stdout).toContain("Of the realtime entries 16 to 20 some are lost");
  rmSync(join(dataDir, ".."), { recursive: true, force: true });
}, 30_000);
