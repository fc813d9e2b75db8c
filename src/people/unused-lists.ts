/**
 * Takes lists of properties' names away that no person has any more: there is room for some thousand, and what a client
 * has once put into a name should not outlive the persons who had it.
 *
 * All persons are looked at, some in each turn. What a step writes meanwhile counts as used, and a list is only taken away
 * some time afterwards: somebody may have read a row and look for its list now.
 */

import type { Database } from "bun:sqlite";
import { forgetWrittenLists, writtenLists } from "./property-lists.ts";

/** Persons that are looked at in one turn. */
export const personsPerTurn = 5_000;

const microsPerMinute = 60_000_000;
/** Not at once: a process that has just begun has other things to do. */
export const firstLookMicros = 10 * microsPerMinute;
export const nextLookMicros = 24 * 60 * microsPerMinute;
/** Nobody holds a row longer than that without its list. */
export const graceMicros = microsPerMinute;

export class UnusedLists {
  private dueMicros: number | undefined;
  /** While persons are looked at, and until what is unused has been taken away. */
  private look: { lastId: number; readonly used: Set<string>; isDone: boolean } | undefined;

  /** @param client the store, which only this process writes. */
  constructor(private readonly client: Database) {}

  /** Goes on where the last turn ended; between two steps. */
  turn(nowMicros: number): void {
    this.dueMicros ??= nowMicros + firstLookMicros;
    if (nowMicros < this.dueMicros) return;
    if (this.look === undefined) {
      forgetWrittenLists(this.client);
      this.look = { lastId: 0, used: new Set(), isDone: false };
    }
    if (!this.look.isDone) {
      this.lookAtSome(this.look);
      if (this.look.isDone) this.dueMicros = nowMicros + graceMicros;
      return;
    }
    this.removeAllBut(this.look.used.union(writtenLists(this.client)));
    this.look = undefined;
    this.dueMicros = nowMicros + nextLookMicros;
  }

  private lookAtSome(look: NonNullable<UnusedLists["look"]>): void {
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
