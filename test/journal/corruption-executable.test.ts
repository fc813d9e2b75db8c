/** The server with a corrupt sealed segment: it loads the rest, and says what is lost. */

import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPersons } from "../../src/persons/open.ts";
import { writeSegment } from "../support/segments.ts";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../support/server.ts";

test("the server starts, loads the rest, reports file and range, and doctor suggests a fix", async () => {
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const lines = (first: number, projectId: number) =>
    Array.from({ length: 5 }, (_, n) =>
      JSON.stringify({
        seq: first + n,
        project_id: projectId,
        uuid: Bun.randomUUIDv7(),
        event: `e${first + n}`,
        distinct_id: "someone",
        time: 1.7e15,
        received: 1.7e15,
        historical: false,
        mode: "full",
        made_uuid: false,
        elements_chain: null,
        properties: {},
      }),
    );
  const journal = join(dataDir, "journal");
  openPersons(join(dataDir, "people.sqlite")).$client.close();
  chmodSync(join(dataDir, "people.sqlite"), 0o600);
  mkdirSync(journal, { recursive: true, mode: 0o700 });
  writeSegment(journal, "realtime", 1, [lines(1, 1), lines(6, 1)]);
  const bad = writeSegment(journal, "realtime", 11, [lines(11, 1), lines(16, 1), lines(21, 1)]);
  writeSegment(journal, "realtime", 26, [lines(26, 1)]);
  writeFileSync(bad.path, readFileSync(bad.path, "utf8").replace('"event":"e18"', '"event":"e99"'));
  const before = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(before.code).toBe(1);
  expect(before.stdout).toContain("realtime/0000000000000011.ndjson is corrupt after entry 15");
  expect(before.stdout).toContain("restore a copy of the file");

  const server = await ServerProcess.start({ directory });
  const events = await server.eventsWhenStored(25);
  const lost = [16, 17, 18, 19, 20];
  expect(events.map(({ seq }) => seq)).toEqual(
    Array.from({ length: 30 }, (_, n) => n + 1).filter((seq) => !lost.includes(seq)),
  );
  expect((await server.capture({ event: "later", distinct_id: "a" })).status).toBe(200);
  await server.eventsWhenStored(26);
  const getErrors = () => server.logs.filter(({ level }) => level === "error");
  await until(() => getErrors().length > 0, "it is logged");
  expect(getErrors()).toMatchObject([{ code: "segment_damaged", msg: expect.stringContaining("16 to 20") }]);
  const skipped = "Corrupt realtime journal entries between 16 and 20 were skipped";
  expect(await server.stop()).toBe(0);
  expect(readdirSync(join(journal, "quarantine"))).toEqual([
    "realtime-0000000000000011.ndjson.lost-16-20.damaged",
  ]);
  const status = await flagkeep(["status", "--json", "--data-dir", dataDir]);
  expect(JSON.parse(status.stdout).skipped_entries).toMatchObject([
    { lane: "realtime", first_seq: 16, last_seq: 20 },
  ]);
  expect((await flagkeep(["status", "--data-dir", dataDir])).stdout).toContain(skipped);
  const again = await ServerProcess.start({ directory });
  const readiness = await (await fetch(`${again.url}/_readiness`)).json();
  expect(readiness).toMatchObject({ warnings: [expect.stringContaining(skipped)] });
  await again.stop();
  const after = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(after.code).toBe(0);
  expect(after.stdout).toContain("Corrupt realtime journal entries between 16 and 20 were skipped");
  rmSync(join(dataDir, ".."), { recursive: true, force: true });
}, 60_000);
