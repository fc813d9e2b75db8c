/** Deletes persons of a running appliance: the entry of the journal, the activity log, and what is told about it. */

import { type Author, recordActivity } from "../accounts/activity.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { readLastBackup } from "../backup/last-backup.ts";
import type { JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import { NotFound } from "../lib/errors.ts";
import { nowMicros } from "../lib/time.ts";
import { type DeletedPerson, type Deletion, deletionLine, type PersonEraser } from "../people/deletion.ts";
import type { PeopleDb } from "../people/open.ts";
import { laneCursors, personByUuid } from "../people/reader.ts";
import type { RpcHandlers } from "../rpc/server.ts";

/** How long an answer waits for the deletion to be applied. */
const patienceMs = 5_000;
const pollMs = 20;

const eventsText = "The events of the person stay: event data cannot be deleted selectively.";

export interface EraserDeps {
  dataDir: string;
  metadata: Metadata;
  people: PeopleDb;
  /** Undefined while the appliance starts. */
  journal: () => JournalPort | undefined;
  /** Changes the metadata, for all fronts where there are several. */
  together: (work: () => void) => Promise<void>;
}

/** What `flagkeep persons delete` asks. */
export interface DeletePerson {
  project_id: number;
  uuid: string;
  by: Author;
}

export class Eraser implements PersonEraser {
  constructor(private readonly deps: EraserDeps) {}

  async erase(projectId: number, person: DeletedPerson, by: Author): Promise<Deletion> {
    const { journal: opened, metadata, people, dataDir, together } = this.deps;
    const journal = opened();
    if (journal === undefined) throw new JournalUnavailableError("closed");
    const { uuid } = person;
    const seq = await journal.append("realtime", [deletionLine(projectId, person, nowMicros())]);
    await together(() =>
      metadata.change((t) =>
        recordActivity(t, {
          ...{ by, projectId, activity: "deleted", scope: "Person", changes: [], now: new Date() },
          // Nothing that tells who it was.
          ...{ itemId: uuid, name: uuid },
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
        : "The deletion is on disk; it is applied as soon as the events before it are.",
      events: eventsText,
      backups: backupsOf(dataDir),
    };
  }

  /** What the control socket answers to `flagkeep persons delete`. */
  rpc(): RpcHandlers {
    return {
      delete_person: async ({ project_id, uuid, by }: DeletePerson) => {
        const person = personByUuid(this.deps.people, project_id, uuid);
        if (person === undefined) throw new NotFound();
        return await this.erase(project_id, { uuid, distinctId: person.mainDistinctId }, by);
      },
    };
  }
}

function backupsOf(dataDir: string): Deletion["backups"] {
  const last = readLastBackup(dataDir);
  if (last === null || last.file === null || last.created_at === null) {
    return { last: null, detail: "No backup is known that holds the person." };
  }
  return {
    last: { file: last.file, created_at: last.created_at },
    detail:
      `Backups up to that of ${last.created_at} still hold the person. Restoring one brings it back, unless the journal ` +
      "behind it is applied again (`backup restore --replay`); remove them with `backup prune`.",
  };
}
