/** Remembers strings as hashes: at least the last million, at most two million. */

const hashesMax = 1_000_000;

export class RecentStrings {
  private older = new Set<bigint>();
  private newer = new Set<bigint>();

  /** @returns whether the string is new, as far as remembered. */
  add(text: string): boolean {
    const hash = Bun.hash.xxHash64(text);
    if (this.newer.has(hash) || this.older.has(hash)) return false;
    this.newer.add(hash);
    if (this.newer.size > hashesMax) {
      this.older = this.newer;
      this.newer = new Set();
    }
    return true;
  }
}
