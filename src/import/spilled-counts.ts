/** Counts how often each of very many texts was met; beyond a limit the counts are on the disk. */

import { Database } from "bun:sqlite";

/** Texts whose counts are in memory, which takes 24 MiB. */
const inMemoryMax = 2 ** 20;

export class SpilledCounts implements Disposable {
  /** A hash table, half full at the most; 0 where nothing is. */
  private readonly hashes: BigUint64Array;
  private readonly counts: Uint32Array;
  private size = 0;
  private spilled: Database | undefined;

  /** @param limit a power of two. */
  constructor(private readonly limit = inMemoryMax) {
    this.hashes = new BigUint64Array(2 * limit);
    this.counts = new Uint32Array(2 * limit);
  }

  /** Counts a text. @returns how often it was met: 1 for the first time. */
  add(text: string): number {
    const hash = Bun.hash.xxHash64(text) || 1n;
    const at = this.placeOf(hash);
    if (this.hashes[at] === 0n) {
      this.hashes[at] = hash;
      this.counts[at] = this.spilledCount(hash);
      this.size += 1;
    }
    this.counts[at]! += 1;
    const count = this.counts[at]!;
    if (this.size === this.limit) this.spill();
    return count;
  }

  [Symbol.dispose](): void {
    this.spilled?.close();
  }

  /** Where a hash is, or would be. */
  private placeOf(hash: bigint): number {
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
      // A file without a name: SQLite removes it with the connection, also when the process is killed.
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

/** As SQLite's integers are. */
function signed(hash: bigint): bigint {
  return BigInt.asIntN(64, hash);
}
