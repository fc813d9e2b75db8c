/**
 * Decides which properties of events get a column of their own: those that questions ask for again and again.
 *
 * Knows nothing of the engine that keeps the columns. Uses are counted with a half-life, in memory: after a restart the
 * columns are still there, and what is asked for is counted anew.
 */

import { dayMs } from "../lib/time.ts";

/** An event store that can keep properties in columns. */
export interface PropertyStore {
  /** The properties that have a column, filled or not. */
  readonly promoted: readonly string[];
  /** How many events there are. */
  rows(): Promise<number>;
  add(names: readonly string[]): Promise<void>;
  /** From now on no question uses the column. */
  retire(name: string): Promise<void>;
  /** Whether older events lack values. */
  readonly isFilling: boolean;
  /** Gives some of the older events their values. @returns properties that do not fit a column */
  fillPiece(): Promise<string[]>;
}

export const promotionRules = {
  /** Columns at most: each costs a third of a microsecond per event that is loaded, and some bytes on the disk. */
  columnsMax: 16,
  /** So many questions within a half-life make a column worth it. */
  usesWanted: 3,
  halfLifeMs: 7 * dayMs,
  /** What nobody asked for that long goes. */
  unusedMs: 30 * dayMs,
  /** Where all columns are taken, a property has to be asked for so many times as often as the least used one. */
  swapFactor: 2,
  /** With fewer events the JSON is quick enough. */
  rowsMin: 100_000,
  /** Names that are remembered. */
  namesMax: 1_000,
  /** Longer names never get a column. */
  nameLengthMax: 200,
};

interface Use {
  score: number;
  /** Of the clock that was given. */
  at: number;
}

export class Promotion {
  private readonly uses = new Map<string, Use>();
  /** Do not fit a column. */
  private readonly unfit = new Set<string>();

  constructor(
    private readonly store: PropertyStore,
    private readonly rules = promotionRules,
    private readonly now: () => number = Date.now,
  ) {
    for (const name of store.promoted) this.uses.set(name, { score: rules.usesWanted, at: now() });
  }

  /** Somebody's question named these properties. */
  note(names: Iterable<string>): void {
    const { namesMax, nameLengthMax } = this.rules;
    for (const name of names) {
      if (name.length > nameLengthMax || this.unfit.has(name)) continue;
      const score = this.scoreOf(name) + 1;
      // Behind all others: the first one is the one that was not asked for longest.
      this.uses.delete(name);
      this.uses.set(name, { score, at: this.now() });
    }
    for (const name of this.uses.keys()) {
      if (this.uses.size <= namesMax) break;
      if (!this.store.promoted.includes(name)) this.uses.delete(name);
    }
  }

  /** Does the next small piece of work. @returns whether there is more to do at once */
  async step(): Promise<boolean> {
    const { store } = this;
    if (store.isFilling) {
      for (const name of await store.fillPiece()) await this.refuse(name);
      return true;
    }
    for (const name of store.promoted) {
      if (this.now() - (this.uses.get(name)?.at ?? 0) > this.rules.unusedMs) await store.retire(name);
    }
    for (const name of this.byScore(store.promoted).slice(this.rules.columnsMax)) await store.retire(name);
    const wanted = this.wanted();
    if (wanted.length === 0 || (await store.rows()) < this.rules.rowsMin) return false;
    const names = await this.withRoom(wanted);
    if (names.length > 0) await store.add(names);
    return names.length > 0;
  }

  /** Properties that are worth a column and have none, the most wanted first. */
  private wanted(): string[] {
    const promoted = new Set(this.store.promoted);
    return this.byScore(
      [...this.uses.keys()].filter(
        (name) => !promoted.has(name) && this.scoreOf(name) >= this.rules.usesWanted,
      ),
    );
  }

  /** The most used first. */
  private byScore(names: readonly string[]): string[] {
    return names.toSorted((one, other) => this.scoreOf(other) - this.scoreOf(one));
  }

  /** As many of them as there is room for; the least used column makes room for one that is used much more. */
  private async withRoom(wanted: readonly string[]): Promise<string[]> {
    const { columnsMax, swapFactor } = this.rules;
    const free = columnsMax - this.store.promoted.length;
    if (free > 0) return wanted.slice(0, free);
    const least = this.byScore(this.store.promoted).at(-1);
    if (least === undefined || this.scoreOf(wanted[0]!) < swapFactor * this.scoreOf(least)) return [];
    await this.store.retire(least);
    return [wanted[0]!];
  }

  private async refuse(name: string): Promise<void> {
    if (this.unfit.size >= this.rules.namesMax) this.unfit.clear();
    this.unfit.add(name);
    this.uses.delete(name);
    await this.store.retire(name);
  }

  private scoreOf(name: string): number {
    const use = this.uses.get(name);
    return use === undefined ? 0 : use.score * 0.5 ** ((this.now() - use.at) / this.rules.halfLifeMs);
  }
}
