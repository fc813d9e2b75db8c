/**
 * The SQLite file of a replica: rows from PostgreSQL, the newest applied commit, and the position of an unfinished copy,
 * which resumes there after an interruption. Rows and position are written in one transaction.
 */

import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { ChangeCapture, type SharedRow } from "./change-capture.ts";
import type { RowPosition } from "./commits.ts";
import { markAsReplica } from "./replica-marker.ts";

export interface ReplicaState {
  /** The newest applied commit; 0: none. */
  revision: number;
  commit_id: string | null;
}

/** A copy of compacted rows that is not finished: the file contains rows of different commits. */
export interface CopyPosition {
  after: RowPosition;
  /** Rows copied, and approximately how many there are. */
  done: number;
  total: number;
  /** The oldest commit whose deletions were known when the copy started. */
  unsentFrom: number;
  /** The newest commit when the last page was read: identifies the history. */
  seen: ReplicaState;
}

export class ReplicaFile {
  tables: ChangeCapture;

  constructor(readonly client: Database) {
    client.run("PRAGMA recursive_triggers = ON");
    markAsReplica(client);
    this.tables = new ChangeCapture(client);
  }

  /** After a migration of the file. */
  reloadSchema(): void {
    this.tables = new ChangeCapture(this.client);
  }

  get state(): ReplicaState {
    return this.client.query<ReplicaState, []>("SELECT revision, commit_id FROM copy_state").get()!;
  }

  get position(): CopyPosition | undefined {
    const row = this.client.query<{ at: string }, []>("SELECT at FROM copy_position").get();
    if (row === null) return undefined;
    const { after, ...others } = JSON.parse(row.at);
    return { ...others, after: { ...after, hash: Buffer.from(after.hash, "hex") } };
  }

  /** Foreign keys are off because rows come in commit order. @param lost rows whose local changes are discarded */
  write(
    rows: readonly SharedRow[],
    lost: readonly SharedRow[] = [],
    then: () => void = () => undefined,
  ): void {
    this.withoutForeignKeys(() =>
      this.client
        .transaction(() => {
          this.tables.write(rows);
          this.tables.forgetRows(lost);
          then();
        })
        .immediate(),
    );
  }

  /** Records a commit whose rows, and all earlier ones, are in the file. */
  setState({ revision, commit_id }: ReplicaState): void {
    this.client.run("UPDATE copy_state SET revision = ?, commit_id = ?", [revision, commit_id]);
    this.client.run("DELETE FROM copy_position");
  }

  setPosition({ after, ...others }: CopyPosition): void {
    const at = JSON.stringify({ ...others, after: { ...after, hash: after.hash.toString("hex") } });
    this.client.run("INSERT OR REPLACE INTO copy_position VALUES (1, ?)", [at]);
  }

  /** Replaces everything by the contents of a complete replica. */
  replaceBy(path: string): void {
    this.withoutForeignKeys(() =>
      this.tables.replaceBy(path, () => {
        const { client } = this;
        client.run("DELETE FROM copy_state; INSERT INTO copy_state SELECT * FROM fresh.copy_state");
        client.run("DELETE FROM copy_position");
      }),
    );
  }

  private withoutForeignKeys(work: () => void): void {
    this.client.run("PRAGMA foreign_keys = OFF");
    try {
      work();
    } finally {
      this.client.run("PRAGMA foreign_keys = ON");
    }
  }
}

export function deleteSqlite(path: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}
