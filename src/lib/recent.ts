/**
 * Keeps what was asked for lately, within a bounded number of bytes.
 *
 * Entries belong to an owner and go away with it. Two generations: what was not asked for while the newer one filled up
 * is forgotten, so that neither reading nor forgetting has to keep an order.
 */
export class Recent<Owner extends object, Value> {
  private newer = new WeakMap<Owner, Map<string, Value>>();
  private older = new WeakMap<Owner, Map<string, Value>>();
  private newerBytes = 0;

  /**
   * @param bytesMax of all entries of all owners together.
   * @param bytesOf  what an entry takes, by estimate.
   */
  constructor(
    private readonly bytesMax: number,
    private readonly bytesOf: (key: string, value: Value) => number,
  ) {}

  get(owner: Owner, key: string): Value | undefined {
    const newer = this.newer.get(owner)?.get(key);
    if (newer !== undefined) return newer;
    const older = this.older.get(owner)?.get(key);
    if (older !== undefined) this.set(owner, key, older);
    return older;
  }

  set(owner: Owner, key: string, value: Value): void {
    const bytes = this.bytesOf(key, value) + overheadBytes;
    if (this.newerBytes + bytes > this.bytesMax / 2) {
      this.older = this.newer;
      this.newer = new WeakMap();
      this.newerBytes = 0;
    }
    this.newerBytes += bytes;
    let entries = this.newer.get(owner);
    if (entries === undefined) {
      entries = new Map();
      this.newer.set(owner, entries);
    }
    entries.set(key, value);
  }
}

/** Of an entry in a map, and of its value as an object. */
const overheadBytes = 200;
