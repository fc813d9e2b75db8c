/** The journal and the store of persons in PostgreSQL keep the promises of the ones in files. */

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import type { Postgres } from "../../src/cluster/connection.ts";
import { PostgresJournal } from "../../src/cluster/journal.ts";
import { JournalReader } from "../../src/cluster/journal-reader.ts";
import { chooseLayout, type PersonsLayout } from "../../src/cluster/layout.ts";
import type { JournalBatch } from "../../src/journal/reader.ts";
import type { Lane } from "../../src/journal/segment.ts";
import { PostgresPersonReader } from "../../src/persons/postgres/reader.ts";
import { PersonStore } from "../../src/persons/store.ts";
import { type JournalUnderTest, journalConformance } from "../journal/journal-conformance.ts";
import {
  type IdentityStoreUnderTest,
  identityStoreConformance,
} from "../persons/identity-store-conformance.ts";
import { countedEvents, getSeen, type SeenPerson, seenPersons, spikeSettings } from "../persons/support.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { hasPostgres } from "../support/postgres.ts";
import { linesIn } from "../support/segments.ts";
import { temporaryFolder, until } from "../support/server.ts";
import { openClusterPersons, openReplica } from "./person-support.ts";

/** Everything a lane has behind a number, as a reader offers it. */
async function readBehind(postgres: Postgres, lane: Lane, behind: number): Promise<JournalBatch[]> {
  const batches: JournalBatch[] = [];
  const { lastSeq } = await getLast(postgres, lane);
  const reader = new JournalReader(
    postgres,
    { realtime: 0, historical: 0, [lane]: behind },
    {
      offer: (some) => batches.push(...some.filter((batch) => batch.lane === lane)),
      waitingBytes: () => 0,
      onFailure: (error) => {
        throw error;
      },
    },
  );
  reader.start();
  await until(() => (batches.at(-1)?.last ?? behind) >= lastSeq, "all is read");
  await reader.stop();
  return batches;
}

async function journalOn(postgres: Postgres): Promise<JournalUnderTest> {
  // Another front each time: it knows nothing of what came before.
  const journal = new PostgresJournal(postgres, { node: crypto.randomUUID(), queueBytesMax: 64e6 });
  return {
    journal,
    batches: (lane) => readBehind(postgres, lane, 0),
    async reopen() {
      await journal.close();
      return await journalOn(postgres);
    },
    async close() {
      await journal.close();
      await postgres.close();
    },
  };
}

async function getLast(postgres: Postgres, lane: string): Promise<{ lastSeq: number }> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT last_seq AS last FROM flagkeep.acknowledged WHERE lane = ${lane}`,
  );
  return { lastSeq: Number(row!.last) };
}

/** The persons of a project as rows. */
async function rowsSeen(postgres: Postgres, projectId: number): Promise<SeenPerson[]> {
  const reader = new PostgresPersonReader(postgres);
  const persons = await reader.personPage(projectId, { limit: 10_000 });
  const ids = await reader.distinctIds(persons);
  return persons.map((person) => getSeen(person, ids.get(person.id)!));
}

/** The engine of a node that has just begun, with no copy of its own yet. */
async function personsOn(
  postgres: Postgres,
  layout: PersonsLayout = "replica",
): Promise<IdentityStoreUnderTest> {
  await chooseLayout(postgres, { persons: layout });
  const folder = temporaryFolder();
  const db = await openReplica(postgres, folder);
  const shared = await openClusterPersons(db, postgres);
  const end = async () => {
    await shared.release();
    await shared.close();
    db.$client.close();
    rmSync(folder, { recursive: true });
  };
  return {
    store: shared.around(new PersonStore(db, spikeSettings)),
    persons: async (projectId) =>
      layout === "rows" ? await rowsSeen(postgres, projectId) : seenPersons(db, projectId),
    counted: async (projectId) => countedEvents(db, projectId),
    reopen: async () => {
      await end();
      return await personsOn(postgres, layout);
    },
    close: async () => {
      await end();
      await postgres.close();
    },
  };
}

usePostgres();
if (hasPostgres) {
  journalConformance(
    "the journal in PostgreSQL",
    async () => await journalOn((await createDatabase()).postgres),
    { hasGaps: true },
  );
  // A small disk ends a step in the middle of a block, and another engine continues behind it.
  test.each([0, 1, 3, 4, 5, 6, 7])(
    "a reader that continues after entry %d reads every later entry",
    async (behind) => {
      const { postgres } = await createDatabase();
      const { journal, close } = await journalOn(postgres);
      const appended: number[] = [];
      for (const size of [3, 1, 3]) {
        const places = Array.from({ length: size }, (_, place) => place);
        const first = await journal.append(
          "historical",
          places.map(() => `"text":""}`),
        );
        appended.push(...places.map((place) => first + place));
      }
      const last = appended[behind - 1] ?? 0;
      const batches = await readBehind(postgres, "historical", last);
      const texts = await Promise.all(batches.map((batch) => batch.text()));
      const seqs = texts.flatMap(({ bytes }) => linesIn(bytes).map((line) => JSON.parse(line).seq as number));
      expect(seqs.filter((seq) => seq > last)).toEqual(appended.slice(behind));
      await close();
    },
  );
  identityStoreConformance(
    "a store of persons that fronts share",
    async () => await personsOn((await createDatabase()).postgres),
    // Each begins some nodes again.
    20,
  );
  identityStoreConformance(
    "persons as rows",
    async () => await personsOn((await createDatabase()).postgres, "rows"),
    20,
  );
}
