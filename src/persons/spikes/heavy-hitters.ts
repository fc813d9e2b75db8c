/**
 * Counts the most frequent names of a stream in bounded memory (Misra and Gries, 1982). Exact for up to the capacity of
 * names. Above it, counts are at most `total / (capacity + 1)` too low, so frequent names are never missed.
 */
export class HeavyHitters {
  private readonly counts: Map<string, number>;

  constructor(
    private readonly room: number,
    counts: Iterable<readonly [string, number]> = [],
  ) {
    this.counts = new Map(counts);
  }

  add(name: string): void {
    const count = this.counts.get(name);
    if (count !== undefined) this.counts.set(name, count + 1);
    else if (this.counts.size < this.room) this.counts.set(name, 1);
    else this.subtractOne();
  }

  /** Adds the counts of another counter. */
  addAll(other: HeavyHitters): void {
    for (const [name, count] of other.counts) this.counts.set(name, count + (this.counts.get(name) ?? 0));
    if (this.counts.size <= this.room) return;
    const excess = this.top(this.counts.size)[this.room]![1];
    for (const [name, count] of this.counts) {
      if (count > excess) this.counts.set(name, count - excess);
      else this.counts.delete(name);
    }
  }

  /** At most `length` names with their counts, most frequent first. */
  top(length: number): [name: string, count: number][] {
    return [...this.counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, length);
  }

  /** Amortized constant time per added name: each call subtracts as many counts as the capacity. */
  private subtractOne(): void {
    for (const [name, count] of this.counts) {
      if (count > 1) this.counts.set(name, count - 1);
      else this.counts.delete(name);
    }
  }
}
