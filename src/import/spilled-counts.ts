/** Counts occurrences of very many strings; beyond a limit the counts are on disk. */

import { Database } from "bun:sqlite";

/** Strings whose counts are in memory, which takes 24 MiB. */
const inMemoryMax = 2 ** 20;

export class SpilledCounts implements Disposable {
  /** A hash table, at most half full; 0 for empty slots. */
  private readonly hashes: BigUint64Array;
  private readonly counts: Uint32Array;
  private size = 0;
  private different = 0;
  private spilled: Database | undefined;

  /** @param limit a power of two. */
  constructor(private readonly limit = inMemoryMax) {
    this.hashes = new BigUint64Array(2 * limit);
    this.counts = new Uint32Array(2 * limit);
  }

  /** Counts a string. @returns its number of occurrences: 1 for the first. */
  add(text: string): number {
    const hash = Bun.hash.xxHash64(text) || 1n;
    const at = this.findSlot(hash);
    if (this.hashes[at] === 0n) {
      this.hashes[at] = hash;
      this.counts[at] = this.spilledCount(hash);
      this.size += 1;
      if (this.counts[at] === 0) this.different += 1;
    }
    this.counts[at]! += 1;
    const count = this.counts[at]!;
    if (this.size === this.limit) this.spill();
    return count;
  }

  /** How many different strings were counted. */
  get distinct(): number {
    return this.different;
  }

  [Symbol.dispose](): void {
    this.spilled?.close();
  }

  /** Position of a hash, or its insertion point. */
  private findSlot(hash: bigint): number {
    const mask = this.hashes.length - 1;
    let at = Number(hash & BigInt(mask));
    while (this.hashes[at] !== 0n && this.hashes[at] !== hash) at = (at + 1) & mask;
    return at;
  }

  private spilledCount(hash: bigint): number {
    const row = this.spilled
      ?.query<{ count: number }, [bigint]>("SELECT count FROM counted WHERE hash = ?")
      .get(signed(hash));
    return row?.count ?? 0;
  }

  private spill(): void {
    if (this.spilled === undefined) {
      // An unnamed file: SQLite deletes it with the connection, even when the process is killed.
      this.spilled = new Database("", { create: true });
      this.spilled.run("CREATE TABLE counted (hash INTEGER PRIMARY KEY, count INTEGER NOT NULL)");
    }
    const insert = this.spilled.query("INSERT OR REPLACE INTO counted VALUES (?, ?)");
    this.spilled.transaction(() => {
      for (const [at, hash] of this.hashes.entries())
        if (hash !== 0n) insert.run(signed(hash), this.counts[at]!);
    })();
    this.hashes.fill(0n);
    this.size = 0;
  }
}

/** SQLite's integers are signed. */
function signed(hash: bigint): bigint {
  return BigInt.asIntN(64, hash);
}
