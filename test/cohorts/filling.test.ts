/** Looking for the members of a cohort continues after its answer: the process may end meanwhile. */

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { initialize } from "../../src/accounts/initialize.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import {
  type CohortCalculator,
  calculateInBackground,
  countPending,
} from "../../src/cohorts/cohort-calculation.ts";
import {
  createCohort,
  endInterruptedCalculations,
  findCohort,
  markCalculating,
} from "../../src/cohorts/cohorts.ts";
import { ServerProcess, temporaryFolder, until } from "../support/server.ts";

const isPro = { key: "plan", type: "person", value: "pro", operator: "exact" };
const filters = { properties: { type: "AND", values: [{ type: "AND", values: [isPro] }] } };

interface Shown {
  id: number;
  is_calculating: boolean;
  count: number | null;
}

test("a search that outlives the store reports nothing, and the next start ends or continues it", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "flagkeep.sqlite");
  const now = new Date();
  let metadata = openMetadata(path);
  initialize(metadata, { organization: "Acme", project: "Shop", email: "ann@example.com" });
  const by = { kind: "system" } as never;
  const { id } = createCohort(metadata, { projectId: 1, by, fields: { name: "Pros", isStatic: true } }, now);
  const dynamic = createCohort(metadata, { projectId: 1, by, fields: { name: "All", filters } }, now);
  markCalculating(metadata, dynamic.id);
  const found = Promise.withResolvers<number>();
  const errors: string[] = [];
  const log = { error: (_: unknown, message: string) => void errors.push(message) };
  const filling = [
    calculateInBackground({ metadata, cohortFiller: undefined as never, log }, id, () => found.promise),
    calculateInBackground({ metadata, cohortFiller: undefined as never, log }, id, () =>
      found.promise.then(() => Promise.reject(new Error("the engine has gone"))),
    ),
  ];
  expect(findCohort(metadata.db, 1, id)?.isCalculating).toBe(true);
  metadata.close();
  found.resolve(3);
  await Promise.all(filling);

  metadata = openMetadata(path);
  expect(findCohort(metadata.db, 1, id)?.isCalculating).toBe(true);
  const interrupted = endInterruptedCalculations(metadata);
  expect(findCohort(metadata.db, 1, id)).toMatchObject({ isCalculating: false, errorsCalculating: 1 });
  expect(interrupted).toEqual([{ id: dynamic.id, projectId: 1 }]);
  expect(findCohort(metadata.db, 1, dynamic.id)?.isCalculating).toBe(true);
  const cohortFiller = { countMembers: async () => 5 } as unknown as CohortCalculator;
  await countPending({ metadata, cohortFiller, log }, interrupted);
  const counted = { isCalculating: false, errorsCalculating: 0, personCount: 5 };
  expect(findCohort(metadata.db, 1, dynamic.id)).toMatchObject(counted);
  expect(endInterruptedCalculations(metadata)).toEqual([]);
  metadata.close();
  rmSync(folder, { recursive: true });
});

test("a store that cannot be written is logged, without an unhandled error", async () => {
  const folder = temporaryFolder();
  const metadata = openMetadata(join(folder, "flagkeep.sqlite"));
  initialize(metadata, { organization: "Acme", project: "Shop", email: "ann@example.com" });
  const by = { kind: "system" } as never;
  const fields = { name: "Pros", isStatic: true };
  const { id } = createCohort(metadata, { projectId: 1, by, fields }, new Date());
  metadata.db.$client.run(`CREATE TRIGGER fails BEFORE UPDATE ON cohort WHEN NOT NEW.is_calculating
    BEGIN SELECT RAISE(ABORT, 'on purpose'); END`);
  const errors: string[] = [];
  const log = { error: (_: unknown, message: string) => void errors.push(message) };
  const fill = (find: () => Promise<number>) =>
    calculateInBackground({ metadata, cohortFiller: undefined as never, log }, id, find);
  await fill(() => Promise.resolve(3));
  await fill(() => Promise.reject(new Error("the engine has gone")));
  const notStored = "failed to store the result of a cohort calculation";
  expect(errors).toEqual([notStored, "failed to calculate a cohort", notStored]);
  metadata.close();
  rmSync(folder, { recursive: true });
});

test("a cohort whose count was interrupted by a kill is counted at the next start", async () => {
  await using server = await ServerProcess.start();
  const { dataDir, initialized } = server;
  await server.capture({ event: "seen", distinct_id: "ann", properties: { $set: { plan: "pro" } } });
  await server.eventsWhenStored(1);
  const path = "/api/projects/1/cohorts/";
  const [engine] = await server.enginePids();
  // It counts for ever.
  process.kill(engine!, "SIGSTOP");
  const body = { name: "Pros", filters };
  const { id, is_calculating } = (await (await server.api(path, { method: "POST", body })).json()) as Shown;
  expect(is_calculating).toBe(true);
  for (const pid of [engine!, server.process.pid]) process.kill(pid, "SIGKILL");
  await using next = await ServerProcess.start({ directory: { dataDir, initialized } });
  const cohort = await until(async () => {
    const shown = (await (await next.api(`${path}${id}/`)).json()) as Shown;
    return !shown.is_calculating && shown;
  }, "the cohort is counted");
  expect(cohort.count).toBe(1);
});
