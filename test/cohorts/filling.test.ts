/** Looking for the members of a cohort goes on after its answer: the process may end meanwhile. */

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { initialise } from "../../src/accounts/initialise.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { fillInBackground } from "../../src/cohorts/cohort-filling.ts";
import { createCohort, endInterruptedCalculations, findCohort } from "../../src/cohorts/cohorts.ts";
import { temporaryFolder } from "../support/appliance.ts";

test("a search that outlives the store says nothing, and the next start ends it", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "flagkeep.sqlite");
  const now = new Date();
  let metadata = openMetadata(path);
  initialise(metadata, { organization: "Acme", project: "Shop", email: "ann@example.com" });
  const by = { kind: "system" } as never;
  const { id } = createCohort(metadata, { projectId: 1, by, fields: { name: "Pros", isStatic: true } }, now);
  const found = Promise.withResolvers<number>();
  const errors: string[] = [];
  const log = { error: (_: unknown, message: string) => void errors.push(message) };
  const filling = [
    fillInBackground({ metadata, cohortFiller: undefined as never, log }, id, () => found.promise),
    fillInBackground({ metadata, cohortFiller: undefined as never, log }, id, () =>
      found.promise.then(() => Promise.reject(new Error("the engine has gone"))),
    ),
  ];
  expect(findCohort(metadata.db, 1, id)?.isCalculating).toBe(true);
  metadata.close();
  found.resolve(3);
  await Promise.all(filling);

  metadata = openMetadata(path);
  expect(findCohort(metadata.db, 1, id)?.isCalculating).toBe(true);
  endInterruptedCalculations(metadata);
  expect(findCohort(metadata.db, 1, id)).toMatchObject({ isCalculating: false, name: "Pros" });
  metadata.close();
  rmSync(folder, { recursive: true });
});

test("a store that cannot be written is told in the log, and thrown at nobody", async () => {
  const folder = temporaryFolder();
  const metadata = openMetadata(join(folder, "flagkeep.sqlite"));
  initialise(metadata, { organization: "Acme", project: "Shop", email: "ann@example.com" });
  const by = { kind: "system" } as never;
  const fields = { name: "Pros", isStatic: true };
  const { id } = createCohort(metadata, { projectId: 1, by, fields }, new Date());
  metadata.db.$client.run(`CREATE TRIGGER fails BEFORE UPDATE ON cohort WHEN NOT NEW.is_calculating
    BEGIN SELECT RAISE(ABORT, 'on purpose'); END`);
  const errors: string[] = [];
  const log = { error: (_: unknown, message: string) => void errors.push(message) };
  const fill = (find: () => Promise<number>) =>
    fillInBackground({ metadata, cohortFiller: undefined as never, log }, id, find);
  await fill(() => Promise.resolve(3));
  await fill(() => Promise.reject(new Error("the engine has gone")));
  const notStored = "what became of a cohort could not be stored";
  expect(errors).toEqual([notStored, "the members of a cohort could not be computed", notStored]);
  metadata.close();
  rmSync(folder, { recursive: true });
});
