/** A restore that is practised beside a running appliance. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, TestAppliance, temporaryFolder } from "../support/appliance.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the newest backup is restored elsewhere, started and compared; nothing is left behind", async () => {
  await using appliance = await TestAppliance.start();
  const here = ["--data-dir", appliance.dataDir];
  const work = join(folder, "work");
  mkdirSync(work);
  const drill = (...args: string[]) => flagkeep(["backup", "drill", ...args, "--work-dir", work, ...here]);
  expect(await drill()).toMatchObject({ code: 1, stderr: expect.stringContaining("no sound backup") });

  await appliance.batch(Array.from({ length: 50 }, (_, i) => ({ event: "seen", distinct_id: `u${i}` })));
  await appliance.eventsWhenStored(50);
  const made = await flagkeep(["backup", "create", "--json", ...here]);
  const { file } = JSON.parse(made.stdout) as { file: string };
  await appliance.capture({ event: "later", distinct_id: "kim" });
  const done = await drill("--json");
  expect([done.stderr, done.code]).toEqual(["", 0]);
  expect(JSON.parse(done.stdout)).toMatchObject({
    ...{ file, ok: true, events: 50 },
    projects: [{ project_id: 1, events: 50, persons: 50 }],
  });
  const shown = await drill(file);
  expect(shown.stdout).toContain("can be restored");
  expect(readdirSync(work)).toEqual([]);
  // The running one went on.
  await appliance.eventsWhenStored(51);

  truncateSync(file, 2_000);
  const broken = await drill(file);
  expect([broken.code, broken.stdout]).toEqual([1, ""]);
  expect(readdirSync(work)).toEqual([]);
}, 120_000);
