/** The copies in a front's data directory are changed by one at a time: its front at the start, then its engine. */

import { expect } from "bun:test";
import { mulberry32 } from "../support/crash-load.ts";
import { TestFronts, testWithFronts } from "../support/fronts.ts";
import { expectAllOnce, FrontLoad, stopMerges } from "../support/fronts-load.ts";
import { flagkeep, type ServerProcess, until } from "../support/server.ts";

const test = testWithFronts("the copies of fronts");

/** Other numbers whenever somebody has made the file's triggers anew, as whoever brings a copy up to date does. */
const getVersion = (fronts: TestFronts, front: ServerProcess) =>
  fronts.askPeopleOf(front, "PRAGMA schema_version");

test("a second front on the same data directory is refused before it changes anything", async () => {
  await using fronts = await TestFronts.start(1);
  await fronts.leader();
  const front = fronts.running.get(0)!;
  const before = getVersion(fronts, front);
  const second = await flagkeep(["serve", ...fronts.settings, "--port", "0", "--data-dir", front.dataDir]);
  expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining("is in use by another Flagkeep") });
  expect(getVersion(fronts, front)).toEqual(before);
}, 60_000);

test("a front that was killed alone is followed when its engine has ended, too", async () => {
  await using fronts = await TestFronts.start(1);
  await stopMerges(fronts);
  const load = new FrontLoad(fronts, mulberry32(1));
  await load.further(300);
  const killed = fronts.running.get(0)!;
  const pids = await killed.enginePids();
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  await fronts.kill(0);
  const before = getVersion(fronts, killed);
  const lines: unknown[] = [];
  const starting = fronts.startFront(0, ({ msg }) => lines.push(msg));
  await until(() => lines.includes("waiting for the engine of the previous node to exit"), "the front waits");
  expect(getVersion(fronts, killed)).toEqual(before);
  for (const pid of pids) process.kill(pid, "SIGCONT");
  await starting;
  await load.further(300);
  await load.stop();
  await expectAllOnce(fronts, load.log);
}, 60_000);
