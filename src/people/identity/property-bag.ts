/**
 * The properties of a person or a group, each with the event time of its last *realtime* write.
 *
 * The last write to arrive wins, in either lane and whatever its event time, but for one case: a historical write is
 * ignored where a realtime one with a later event time stands. That time is all that is remembered, so it goes on
 * protecting against older history after younger history has replaced the value; a name that is unset leaves it behind,
 * so that older history does not bring the value back.
 *
 * Pure: nothing here knows the store. Source: contract, README "Deviations", decision 1, and ingestion 12.2.
 */

import { bytesAtMost, exactBytes, isTooDeep, propertyBytesMax } from "./property-size.ts";

/** When a write happened, and in which lane it came. */
export interface WriteTime {
  timeMicros: number;
  historical: boolean;
}

/** Stands for the time of a realtime write where only history has written: older than any. */
const neverInRealtime = Number.NEGATIVE_INFINITY;

/** Unset names that are remembered; beyond, those with the oldest times are forgotten. */
export const unsetNamesMax = 1_000;

/** Longer names are not remembered after an `$unset`: the memory of names must not become a store of text. */
const unsetNameLengthMax = 400;

/** What a bag is made of; objects without prototype, so that no property name is a special one. */
export interface BagContent {
  values: Record<string, unknown>;
  /** The time of every value that is not in `times`; negative infinity where only history has written. */
  baseTime: number;
  times: Record<string, number>;
  /** Names that are absent because they were unset, and the time of the last realtime write or unset before. */
  unsetTimes: Map<string, number>;
  /** At least as many bytes as the values take as JSON. */
  bytesMax: number;
}

function emptyContent(): BagContent {
  return {
    values: Object.create(null),
    baseTime: Number.NaN,
    times: Object.create(null),
    unsetTimes: new Map(),
    bytesMax: 2,
  };
}

/** Names are kept well-formed: halves of surrogate pairs do not survive storage, and writes of a name must meet. */
export class PropertyBag {
  /** By name; without prototype. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly unsetTimes: ReadonlyMap<string, number>;
  /** Writes after which a value is another one than before. */
  changes = 0;
  /** Writes that changed a value or a time. */
  touches = 0;
  /** Writes that were refused for their size or depth. */
  refusals = 0;
  private readonly heldValues: Record<string, unknown>;
  private readonly heldUnsetTimes: Map<string, number>;
  // One event writes most of the properties, so most need no time of their own.
  private baseTime: number;
  private readonly times: Record<string, number>;
  /** An upper bound of the JSON's size in bytes, or its size. */
  private bytes: number;
  private isExact = false;

  constructor(content: BagContent = emptyContent()) {
    this.heldValues = content.values;
    this.heldUnsetTimes = content.unsetTimes;
    this.baseTime = content.baseTime;
    this.times = content.times;
    this.bytes = content.bytesMax;
    this.values = this.heldValues;
    this.unsetTimes = this.heldUnsetTimes;
  }

  /** The time of the last realtime write of a value that is present; negative infinity when there was none. */
  timeOf(name: string): number {
    return this.times[name] ?? this.baseTime;
  }

  set(name: string, value: unknown, write: WriteTime): void {
    const present = this.heldValues[name];
    if (present === undefined) this.setAbsent(name, value, write);
    else if (!write.historical) this.replace(name, present, value, write.timeMicros);
    else if (this.timeOf(name) <= write.timeMicros) this.replace(name, present, value, this.timeOf(name));
  }

  /** Writes unless there is a value; null is a value. */
  setOnce(name: string, value: unknown, write: WriteTime): void {
    if (this.heldValues[name] === undefined) this.setAbsent(name, value, write, true);
  }

  unset(rawName: string, write: WriteTime): void {
    const name = rawName.isWellFormed() ? rawName : rawName.toWellFormed();
    const time = write.historical ? this.timeOfAny(name) : write.timeMicros;
    if (time !== undefined && time <= write.timeMicros) this.remove(name, time);
  }

  /** Forgets the oldest unset names when there are too many; for the end of an event. */
  boundUnsetNames(): void {
    if (this.heldUnsetTimes.size <= unsetNamesMax) return;
    // By name among equal times: the outcome must not depend on how events fell into batches.
    const oldestFirst = [...this.heldUnsetTimes].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
    for (const [name] of oldestFirst.slice(0, -unsetNamesMax)) this.heldUnsetTimes.delete(name);
  }

  /**
   * Takes over the properties of a person that is folded into this one, with their times; this one's values win.
   *
   * But what a realtime event wrote or unset wins over what only history wrote. And a historical merge does not overwrite
   * what a realtime event later than itself wrote or unset: of two such the later wins.
   */
  absorb(other: PropertyBag, merge: WriteTime): void {
    for (const name in other.heldValues) {
      const timeMicros = other.timeOf(name);
      const present = this.heldValues[name];
      if (!this.isTakenOver(name, present === undefined, timeMicros, merge)) continue;
      if (present === undefined) this.add(name, other.heldValues[name], timeMicros);
      else this.replace(name, present, other.heldValues[name], timeMicros);
    }
    for (const [name, timeMicros] of other.heldUnsetTimes) {
      if (this.isTakenOver(name, false, timeMicros, merge)) this.remove(name, timeMicros);
    }
    this.boundUnsetNames();
  }

  /**
   * Whether the other's value, or the time at which the other unset the name, takes the place of what is here.
   *
   * @param isWinning it does so unless a later event is in the way; else only if it is itself the later event.
   */
  private isTakenOver(name: string, isWinning: boolean, theirTime: number, merge: WriteTime): boolean {
    const ourTime = this.timeOfAny(name);
    if (ourTime === undefined) return true;
    if (ourTime === neverInRealtime || theirTime === neverInRealtime) return ourTime < theirTime;
    if (isWinning) return !(merge.historical && ourTime > merge.timeMicros && ourTime > theirTime);
    if (this.heldValues[name] === undefined) return theirTime > ourTime;
    return merge.historical && theirTime > merge.timeMicros && theirTime > ourTime;
  }

  /** When a name was last written or unset in realtime; undefined for a name of which nothing is known. */
  private timeOfAny(name: string): number | undefined {
    return this.heldValues[name] === undefined ? this.heldUnsetTimes.get(name) : this.timeOf(name);
  }

  private setAbsent(rawName: string, value: unknown, write: WriteTime, isOnce = false): void {
    if (!rawName.isWellFormed()) {
      const name = rawName.toWellFormed();
      if (isOnce) this.setOnce(name, value, write);
      else this.set(name, value, write);
      return;
    }
    const time = write.historical ? (this.heldUnsetTimes.get(rawName) ?? neverInRealtime) : write.timeMicros;
    if (time <= write.timeMicros) this.add(rawName, value, time);
  }

  private add(name: string, value: unknown, timeMicros: number): void {
    if (value === undefined) return;
    if (isTooDeep(value) || !this.makeRoom(name, undefined, value)) {
      this.refusals += 1;
      return;
    }
    this.heldValues[name] = value;
    if (this.heldUnsetTimes.size > 0) this.heldUnsetTimes.delete(name);
    if (Number.isNaN(this.baseTime)) this.baseTime = timeMicros;
    this.setTime(name, timeMicros);
    this.changes += 1;
    this.touches += 1;
  }

  private replace(name: string, present: unknown, value: unknown, timeMicros: number): void {
    if (!isSame(present, value)) {
      if (value === undefined) return;
      if (isTooDeep(value) || !this.makeRoom(name, present, value)) {
        this.refusals += 1;
        return;
      }
      this.heldValues[name] = value;
      this.changes += 1;
      this.setTime(name, timeMicros);
      this.touches += 1;
      return;
    }
    // Most writes repeat a value: only its time is another one.
    const time = this.times[name];
    if ((time ?? this.baseTime) === timeMicros) return;
    this.times[name] = timeMicros;
    this.touches += 1;
  }

  private setTime(name: string, timeMicros: number): void {
    if (timeMicros !== this.baseTime || this.times[name] !== undefined) this.times[name] = timeMicros;
  }

  private remove(name: string, timeMicros: number): void {
    const present = this.heldValues[name];
    if (present !== undefined) {
      if (this.isExact) this.bytes -= exactBytes(name, present);
      delete this.heldValues[name];
      this.changes += 1;
      this.touches += 1;
    }
    if (timeMicros === neverInRealtime || name.length > unsetNameLengthMax) return;
    if (this.heldUnsetTimes.get(name) !== timeMicros) this.touches += 1;
    this.heldUnsetTimes.set(name, timeMicros);
  }

  /** Counts the bytes of a write; false when they do not fit and are more than before. */
  private makeRoom(name: string, present: unknown, value: unknown): boolean {
    if (!this.isExact) {
      const bytes = this.bytes + bytesAtMost(name, value);
      if (bytes <= propertyBytesMax) {
        this.bytes = bytes;
        return true;
      }
      this.bytes = 1;
      for (const known in this.heldValues) this.bytes += exactBytes(known, this.heldValues[known]);
      this.isExact = true;
    }
    const before = present === undefined ? 0 : exactBytes(name, present);
    const growth = exactBytes(name, value) - before;
    if (growth > 0 && this.bytes + growth > propertyBytesMax) return false;
    this.bytes += growth;
    return true;
  }
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  return !isTooDeep(b) && Bun.deepEquals(a, b, true);
}
