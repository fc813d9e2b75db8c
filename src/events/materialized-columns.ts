/**
 * Decides which event properties are materialized as columns: those that queries use frequently, and those of web
 * analytics. Independent of the engine. Uses are counted in memory with a half-life: after a restart the columns exist, and counting starts from
 * scratch.
 */

import { dayMs } from "../lib/time.ts";

/** An event store that can materialize properties. */
export interface PropertyStore {
  /** The properties with a column, complete or not. */
  readonly promoted: readonly string[];
  /** Number of events. */
  rows(): Promise<number>;
  add(names: readonly string[]): Promise<void>;
  /** Stops queries from using the column. */
  retire(name: string): Promise<void>;
  /** Whether older events are missing values. */
  readonly isFilling: boolean;
  /** Fills the column for some older events. @returns properties that are unsuitable for a column */
  fillChunk(): Promise<string[]>;
}

export const materializationRules = {
  /** Maximum number of columns: each costs a third of a microsecond per loaded event, and some disk space. */
  columnsMax: 16,
  /** Uses within a half-life that justify a column. */
  usesWanted: 3,
  halfLifeMs: 7 * dayMs,
  /** Columns that are unused for this long are dropped. */
  unusedMs: 30 * dayMs,
  /** If all columns are taken, a property needs this multiple of the uses of the least used one. */
  swapFactor: 2,
  /** With fewer events, reading JSON is fast enough. */
  rowsMin: 100_000,
  /** Maximum number of tracked names. */
  namesMax: 1_000,
  /** Longer names never get a column. */
  nameLengthMax: 200,
};

interface Use {
  score: number;
  /** Time of the clock passed to the constructor. */
  at: number;
}

export class MaterializationPolicy {
  /** Properties that have a column regardless of their use and of the limit. */
  private pinned: ReadonlySet<string> = new Set();
  private readonly uses = new Map<string, Use>();
  /** Properties unsuitable for a column. */
  private readonly unfit = new Set<string>();

  constructor(
    private readonly store: PropertyStore,
    private readonly rules = materializationRules,
    private readonly now: () => number = Date.now,
  ) {
    for (const name of store.promoted) this.uses.set(name, { score: rules.usesWanted, at: now() });
  }

  /** A user's query has read these properties. */
  recordUse(names: Iterable<string>): void {
    const { namesMax, nameLengthMax } = this.rules;
    for (const name of names) {
      if (name.length > nameLengthMax || this.unfit.has(name)) continue;
      const score = this.getScore(name) + 1;
      // Re-insert at the end: the map is ordered by last use.
      this.uses.delete(name);
      this.uses.set(name, { score, at: this.now() });
    }
    for (const name of this.uses.keys()) {
      if (this.uses.size <= namesMax) break;
      if (!this.store.promoted.includes(name)) this.uses.delete(name);
    }
  }

  /** Gives these properties a column, also if queries have not read them; replaces the previous ones. */
  pin(names: Iterable<string>): void {
    this.pinned = new Set(names);
  }

  /** Does the next small unit of work. @returns whether more work can be done immediately */
  async step(): Promise<boolean> {
    const { store } = this;
    if (store.isFilling) {
      for (const name of await store.fillChunk()) await this.reject(name);
      return true;
    }
    const missing = [...this.pinned].filter(
      (name) => !store.promoted.includes(name) && !this.unfit.has(name),
    );
    if (missing.length > 0) {
      await store.add(missing);
      return true;
    }
    for (const name of this.unpinned) {
      if (this.now() - (this.uses.get(name)?.at ?? 0) > this.rules.unusedMs) await store.retire(name);
    }
    for (const name of this.byScore(this.unpinned).slice(this.rules.columnsMax)) await store.retire(name);
    const wanted = this.wanted();
    if (wanted.length === 0 || (await store.rows()) < this.rules.rowsMin) return false;
    const names = await this.withinCapacity(wanted);
    if (names.length > 0) await store.add(names);
    return names.length > 0;
  }

  /** The properties with a column that the limits apply to. */
  private get unpinned(): string[] {
    return this.store.promoted.filter((name) => !this.pinned.has(name));
  }

  /** Properties that deserve a column and have none, most used first. */
  private wanted(): string[] {
    const promoted = new Set(this.store.promoted);
    return this.byScore(
      [...this.uses.keys()].filter(
        (name) => !promoted.has(name) && this.getScore(name) >= this.rules.usesWanted,
      ),
    );
  }

  /** Most used first. */
  private byScore(names: readonly string[]): string[] {
    return names.toSorted((a, b) => this.getScore(b) - this.getScore(a));
  }

  /** As many as there are free columns; the least used column is dropped for a property that is used much more. */
  private async withinCapacity(wanted: readonly string[]): Promise<string[]> {
    const { columnsMax, swapFactor } = this.rules;
    const free = columnsMax - this.unpinned.length;
    if (free > 0) return wanted.slice(0, free);
    const least = this.byScore(this.unpinned).at(-1);
    if (least === undefined || this.getScore(wanted[0]!) < swapFactor * this.getScore(least)) return [];
    await this.store.retire(least);
    return [wanted[0]!];
  }

  private async reject(name: string): Promise<void> {
    if (this.unfit.size >= this.rules.namesMax) this.unfit.clear();
    this.unfit.add(name);
    this.uses.delete(name);
    await this.store.retire(name);
  }

  private getScore(name: string): number {
    const use = this.uses.get(name);
    return use === undefined ? 0 : use.score * 0.5 ** ((this.now() - use.at) / this.rules.halfLifeMs);
  }
}
