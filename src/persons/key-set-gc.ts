/**
 * Deletes property key sets that no person uses: their number is limited, and names sent by a client should not outlive
 * its persons. Scans all persons in slices. Key sets written meanwhile count as used, and deletion waits for a grace
 * period, because a reader may have read a row but not its key set.
 */

import type { Database } from "bun:sqlite";
import { clearRecentKeySets, recentKeySets } from "./property-key-sets.ts";

/** Persons per slice. */
export const personsPerTurn = 5_000;

const microsPerMinute = 60_000_000;
/** Delay after startup, which has more urgent work. */
export const firstLookMicros = 10 * microsPerMinute;
export const nextLookMicros = 24 * 60 * microsPerMinute;
/** Maximum time between reading a row and its key set. */
export const graceMicros = microsPerMinute;

export class KeySetCollector {
  private dueMicros: number | undefined;
  /** Set from the first slice until unused key sets are deleted. */
  private check: { lastId: number; readonly used: Set<string>; isDone: boolean } | undefined;

  /** @param client of the store, which only this process writes */
  constructor(private readonly client: Database) {}

  /** Processes the next slice; call it between steps. */
  turn(nowMicros: number): void {
    this.dueMicros ??= nowMicros + firstLookMicros;
    if (nowMicros < this.dueMicros) return;
    if (this.check === undefined) {
      clearRecentKeySets(this.client);
      this.check = { lastId: 0, used: new Set(), isDone: false };
    }
    if (!this.check.isDone) {
      this.lookAtSome(this.check);
      if (this.check.isDone) this.dueMicros = nowMicros + graceMicros;
      return;
    }
    this.removeAllBut(this.check.used.union(recentKeySets(this.client)));
    this.check = undefined;
    this.dueMicros = nowMicros + nextLookMicros;
  }

  private lookAtSome(look: NonNullable<KeySetCollector["check"]>): void {
    const persons = this.client
      .query<[number, string], [number, number]>(
        `SELECT id, iif(substr(properties, 1, 1) = '{', '', substr(properties, 1, instr(properties, char(10)) - 1))
         FROM person WHERE id > ? ORDER BY id LIMIT ?`,
      )
      .values(look.lastId, personsPerTurn) as [number, string][];
    for (const [, list] of persons) look.used.add(list);
    look.lastId = persons.at(-1)?.[0] ?? look.lastId;
    look.isDone = persons.length < personsPerTurn;
  }

  private removeAllBut(used: ReadonlySet<string>): void {
    this.client
      .query("DELETE FROM property_list WHERE id NOT IN (SELECT value FROM json_each(?))")
      .run(JSON.stringify([...used]));
  }
}
