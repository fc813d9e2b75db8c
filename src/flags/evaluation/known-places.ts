/**
 * Remembers where ids fall, flag by flag: hashing is most of the time of an evaluation, and the same people come back.
 *
 * Belongs to one flag set and goes away with it. Holds a bounded number of bytes, whatever the number of ids.
 */

const bytesMax = 16 * 1024 * 1024;
/** What an id costs beside its places. */
const overheadBytes = 200;
const unknown = -1;

/** The places of one id: for each flag of the set, by its position, that in the rollout and that among the variants. */
export type Places = Float64Array;

export class KnownPlaces {
  private recent = new Map<string, Places>();
  private older = new Map<string, Places>();
  private readonly length: number;
  private readonly recentMax: number;

  constructor(flagCount: number) {
    this.length = flagCount * 2;
    this.recentMax = Math.max(1, Math.floor(bytesMax / 2 / (this.length * 8 + overheadBytes)));
  }

  /** What is known of an id; the caller fills in what it computes. */
  of(id: string): Places {
    const known = this.recent.get(id);
    if (known !== undefined) return known;
    const places = this.older.get(id) ?? new Float64Array(this.length).fill(unknown);
    if (this.recent.size >= this.recentMax) {
      // Two generations: whoever was not asked for during the last one is forgotten.
      this.older = this.recent;
      this.recent = new Map();
    }
    this.recent.set(id, places);
    return places;
  }
}

/** Where the place in the rollout of a flag is kept. */
export function rolloutSlot(position: number): number {
  return position * 2;
}

/** Where the place among the variants of a flag is kept. */
export function variantSlot(position: number): number {
  return position * 2 + 1;
}

/** Whether a place was filled in before. */
export function isKnown(place: number | undefined): place is number {
  return place !== undefined && place !== unknown;
}
