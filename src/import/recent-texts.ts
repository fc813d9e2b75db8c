/** Remembers strings as hashes: at least the last million, at most two million. */

const hashesMax = 1_000_000;

/** A string that was new. */
export interface Claim {
  /** Makes the string new again. */
  release(): void;
}

export class RecentStrings {
  private older = new Set<bigint>();
  private newer = new Set<bigint>();

  /** @returns undefined if the string is not new, as far as remembered. */
  add(text: string): Claim | undefined {
    const hash = Bun.hash.xxHash64(text);
    if (this.newer.has(hash) || this.older.has(hash)) return undefined;
    this.newer.add(hash);
    if (this.newer.size > hashesMax) {
      this.older = this.newer;
      this.newer = new Set();
    }
    return { release: () => void (this.newer.delete(hash) || this.older.delete(hash)) };
  }
}
