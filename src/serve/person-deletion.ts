/** Deletes persons of a running server: journal entry, activity log and notifications. */

import { type Author, recordActivity } from "../accounts/activity.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { readLastBackup } from "../backup/last-backup.ts";
import type { JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import { NotFoundError } from "../lib/errors.ts";
import { nowMicros } from "../lib/time.ts";
import { type DeletedPerson, type Deletion, deletionEntry, type PersonDeleter } from "../persons/deletion.ts";
import type { PersonsDb } from "../persons/open.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { laneCursors } from "../persons/reader.ts";
import type { RpcHandlers } from "../rpc/server.ts";

/** How long a response waits for the deletion to be applied. */
const patienceMs = 5_000;
const pollMs = 20;

const eventsNotice = "The events of the person are kept: event data cannot be deleted selectively.";

export interface EraserDeps {
  dataDir: string;
  metadata: Metadata;
  /** To check which entries have been applied. */
  people: PersonsDb;
  persons: PersonReader;
  /** Undefined while the server starts. */
  journal: () => JournalPort | undefined;
  /** Changes the metadata, in a cluster for all nodes. */
  together: (work: (now?: Date) => void) => Promise<void>;
}

/** Request of `flagkeep persons delete`. */
export interface DeletePerson {
  project_id: number;
  uuid: string;
  by: Author;
}

export class PersonDeletionService implements PersonDeleter {
  constructor(private readonly deps: EraserDeps) {}

  async erase(projectId: number, person: DeletedPerson, by: Author): Promise<Deletion> {
    const { journal: opened, metadata, people, dataDir, together } = this.deps;
    const journal = opened();
    if (journal === undefined) throw new JournalUnavailableError("closed");
    const { uuid } = person;
    const seq = await journal.append("realtime", [deletionEntry(projectId, person, nowMicros())]);
    await together((now = new Date()) =>
      metadata.change((t) =>
        recordActivity(t, {
          by,
          projectId,
          activity: "deleted",
          scope: "Person",
          changes: [],
          now,
          // Must not identify the person.
          itemId: uuid,
          name: uuid,
        }),
      ),
    );
    const end = performance.now() + patienceMs;
    while (laneCursors(people).realtime < seq && performance.now() < end) await Bun.sleep(pollMs);
    const isApplied = laneCursors(people).realtime >= seq;
    return {
      uuid,
      state: isApplied ? "deleted" : "accepted",
      detail: isApplied
        ? "The person is deleted, with its properties, distinct ids and cohort memberships."
        : "The deletion is on disk and is applied after the events before it.",
      events: eventsNotice,
      backups: getBackups(dataDir),
    };
  }

  /** Control socket handlers of `flagkeep persons delete`. */
  rpc(): RpcHandlers {
    return {
      delete_person: async ({ project_id, uuid, by }: DeletePerson) => {
        const person = await this.deps.persons.personByUuid(project_id, uuid);
        if (person === undefined) throw new NotFoundError();
        return await this.erase(project_id, { uuid, distinctId: person.mainDistinctId }, by);
      },
    };
  }
}

function getBackups(dataDir: string): Deletion["backups"] {
  const last = readLastBackup(dataDir);
  if (last === null || last.file === null || last.created_at === null) {
    return { last: null, detail: "No known backup contains the person." };
  }
  return {
    last: { file: last.file, created_at: last.created_at },
    detail:
      `Backups up to ${last.created_at} still contain the person. Restoring one restores the person, unless the journal ` +
      "after it is replayed (`backup restore --replay`). Delete them with `backup prune`.",
  };
}
