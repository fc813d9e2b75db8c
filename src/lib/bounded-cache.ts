/**
 * Caches recently used entries within a limit of bytes.
 *
 * Entries belong to an owner and are released with it. Two generations: entries that were not used while the newer one
 * filled up are dropped, so that neither reads nor eviction maintain an order.
 */
export class BoundedCache<Owner extends object, Value> {
  private newer = new WeakMap<Owner, Map<string, Value>>();
  private older = new WeakMap<Owner, Map<string, Value>>();
  private newerBytes = 0;

  /**
   * @param bytesMax limit for all entries of all owners.
   * @param bytesOf  estimated size of an entry.
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

/** Estimated overhead of a map entry and its value object. */
const overheadBytes = 200;

const textsMax = 8_192;
/** Longer strings are rarely repeated. */
const lengthMax = 64;

let recent = new Map<string, string>();
let before = new Map<string, string>();

/** The recently interned instance of an equal string, else the string itself. */
export function intern(text: string): string {
  if (text.length > lengthMax) return text;
  const known = recent.get(text);
  if (known !== undefined) return known;
  if (recent.size >= textsMax) {
    before = recent;
    recent = new Map();
  }
  const shared = before.get(text) ?? text;
  recent.set(shared, shared);
  return shared;
}

/** Sets the newest entry of a map, and evicts the oldest one of a full map. Reading does not make an entry newer. */
export function setNewest<Key, Value>(
  map: Map<Key, Value>,
  key: Key,
  value: Value,
  entriesMax: number,
): void {
  map.delete(key);
  if (map.size >= entriesMax) map.delete(map.keys().next().value as Key);
  map.set(key, value);
}
