/**
 * The properties of a person or a group, each with the event time of its last *realtime* write. The last write to
 * arrive wins, in either lane and regardless of its event time, with one exception: a historical write is ignored if a
 * realtime write has a later event time. Only that time is stored, so it still protects against older historical
 * writes after a newer one has replaced the value. Unset names keep their time, so that older historical writes do not
 * restore the value. Pure. Source: contract, README "Deviations", decision 1, and ingestion 12.2.
 */

import { isSameJson, tooDeep } from "../../lib/json/canonical.ts";
import type { PropertyWrites } from "./automatic-properties.ts";
import { PropertyNames } from "./property-names.ts";

/** Maximum bytes of the properties as JSON; writes that increase the size beyond it are rejected. */
export const propertyBytesMax = 512 * 1024;

/** Event time and lane of a write. */
export interface WriteTime {
  timeMicros: number;
  historical: boolean;
}

/** Realtime write time of values written only by historical events: earlier than any other. */
const neverInRealtime = Number.NEGATIVE_INFINITY;

/** Maximum number of unset names; the ones with the oldest times are dropped. */
export const unsetNamesMax = 1_000;

/** Longer names are not stored after an `$unset`: unset names must not become a store of text. */
const unsetNameLengthMax = 400;

/** The contents of a state; lists are indexed by slot. */
export interface PropertyStateData {
  names: PropertyNames;
  /** As `canonicalJson` writes them. */
  texts: string[];
  /** Time of the last realtime write; negative infinity if only historical events have written. */
  times: number[];
  /** Names removed by `$unset`, with the time of their last realtime write or unset. */
  unsetTimes: Map<string, number>;
}

function emptyPropertyState(): PropertyStateData {
  return { names: PropertyNames.none, texts: [], times: [], unsetTimes: new Map() };
}

/** Value of an unset name, whose time is meaningless. */
const absent = "";

/**
 * Names are well-formed strings: lone surrogates do not survive storage, and all writes of a name must match. Values
 * are JSON strings, because most are copied from one JSON to another.
 */
export class PropertyState {
  readonly unsetTimes: ReadonlyMap<string, number>;
  /** Number of writes that changed a value since `settle`. */
  changes = 0;
  /** Number of writes that changed a value or a time. */
  touches = 0;
  /** Number of writes rejected because of size or depth. */
  rejections = 0;
  private names: PropertyNames;
  /** Whether a value may be `absent`. */
  private hasAbsent = false;
  /** A list of names that all have a value. */
  private presentNames: readonly string[] | undefined;
  private readonly texts: string[];
  private readonly times: number[];
  private readonly heldUnsetTimes: Map<string, number>;
  /** Upper bound of the size as JSON; estimated on the first write. */
  private bytesMax: number | undefined;
  /** Exact size, counted when the bound exceeds the limit. */
  private bytes: number | undefined;

  constructor(content: PropertyStateData = emptyPropertyState()) {
    this.names = content.names;
    this.texts = content.texts;
    this.times = content.times;
    this.heldUnsetTimes = content.unsetTimes;
    this.unsetTimes = this.heldUnsetTimes;
  }

  /** Called when the writes are stored. */
  settle(): void {
    this.changes = 0;
  }

  /** The properties in the order of JavaScript objects; do not modify. */
  get content(): Readonly<Omit<PropertyStateData, "unsetTimes">> {
    if (this.names.haveIndexes || this.hasAbsent) this.arrange();
    const { names, texts, times } = this;
    return { names, texts, times };
  }

  /** The values of the given names, without absent ones. */
  textsOf(names: readonly string[]): string[] {
    const slots = this.names.slotsOf(names);
    return slots.flatMap((slot) => (slot === -1 || this.texts[slot] === absent ? [] : [this.texts[slot]!]));
  }

  /** Time of the last realtime write of a present value; negative infinity if none. */
  timeOf(name: string): number {
    return this.times[this.names.slotOf(name)!]!;
  }

  /** @param text as `canonicalJson` writes it */
  set(name: string, text: string, write: WriteTime): void {
    const slot = this.names.slotOf(name);
    if (slot === undefined || this.texts[slot] === absent) this.setAbsent(name, text, write);
    else if (!write.historical) this.replace(slot, text, write.timeMicros);
    else if (this.times[slot]! <= write.timeMicros) this.replace(slot, text, this.times[slot]!);
  }

  /** Sets values of members, most of which are unchanged. */
  setMembers({ members, names, indexes }: PropertyWrites, write: WriteTime): void {
    const slots = this.names.slotsOf(names);
    const { texts } = this;
    for (let index = 0; index < indexes.length; index++) {
      const memberIndex = indexes[index]!;
      const slot = slots[index]!;
      // Slots are stable when names are added.
      const isRepeated = slot !== -1 && !write.historical && members.isText(memberIndex, texts[slot]!);
      if (!isRepeated) {
        this.set(names[index]!, members.text(memberIndex), write);
        continue;
      }
      // Sharing the string lets the next comparison succeed by reference.
      if (members.number(memberIndex) !== 0) texts[slot] = members.text(memberIndex);
      this.touch(slot, write.timeMicros);
    }
  }

  /** Writes unless a value exists; null is a value. */
  setOnce(name: string, text: string, write: WriteTime): void {
    if (!this.has(name)) this.setAbsent(name, text, write, true);
  }

  /** Writes values of members that do not exist; usually all exist. */
  setMembersOnce({ members, names, indexes }: PropertyWrites, write: WriteTime): void {
    if (names === this.presentNames) return;
    const slots = this.names.slotsOf(names);
    let areAllPresent = true;
    for (let index = 0; index < indexes.length; index++) {
      const slot = slots[index]!;
      // Slots are stable when names are added.
      if (slot !== -1 && this.texts[slot] !== absent) continue;
      areAllPresent = false;
      this.setOnce(names[index]!, members.text(indexes[index]!), write);
    }
    if (areAllPresent) this.presentNames = names;
  }

  unset(rawName: string, write: WriteTime): void {
    const name = rawName.isWellFormed() ? rawName : rawName.toWellFormed();
    const time = write.historical ? this.timeOfAny(name) : write.timeMicros;
    if (time !== undefined && time <= write.timeMicros) this.remove(name, time);
  }

  /** Drops the oldest unset names above the limit; call after each event. */
  boundUnsetNames(): void {
    if (this.heldUnsetTimes.size <= unsetNamesMax) return;
    // By name for equal times: the result must not depend on the division into batches.
    const oldestFirst = [...this.heldUnsetTimes].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1));
    for (const [name] of oldestFirst.slice(0, -unsetNamesMax)) this.heldUnsetTimes.delete(name);
  }

  /**
   * Merges the properties of a person that is merged into this one; this person's values win. Exceptions: realtime
   * writes and unsets win over values that only historical events wrote, and a historical merge does not overwrite
   * later realtime writes or unsets: of two such, the later wins.
   */
  absorb(other: PropertyState, merge: WriteTime): void {
    const theirs = other.content;
    for (const [index, name] of theirs.names.names.entries()) {
      const timeMicros = theirs.times[index]!;
      const isPresent = this.has(name);
      if (!this.isReplaced(name, !isPresent, timeMicros, merge)) continue;
      if (isPresent) this.replace(this.names.slotOf(name)!, theirs.texts[index]!, timeMicros);
      else this.add(name, theirs.texts[index]!, timeMicros);
    }
    for (const [name, timeMicros] of other.heldUnsetTimes) {
      if (this.isReplaced(name, false, timeMicros, merge)) this.remove(name, timeMicros);
    }
    this.boundUnsetNames();
  }

  /**
   * Whether the other person's value or unset replaces this one's.
   * @param isWinning the other wins unless a later event prevents it; otherwise it wins only if it is the later event
   */
  private isReplaced(name: string, isWinning: boolean, theirTime: number, merge: WriteTime): boolean {
    const ourTime = this.timeOfAny(name);
    if (ourTime === undefined) return true;
    if (ourTime === neverInRealtime || theirTime === neverInRealtime) return ourTime < theirTime;
    if (isWinning) return !(merge.historical && ourTime > merge.timeMicros && ourTime > theirTime);
    if (!this.has(name)) return theirTime > ourTime;
    return merge.historical && theirTime > merge.timeMicros && theirTime > ourTime;
  }

  /** Time of the last realtime write or unset; undefined for unknown names. */
  private timeOfAny(name: string): number | undefined {
    return this.has(name) ? this.timeOf(name) : this.heldUnsetTimes.get(name);
  }

  private has(name: string): boolean {
    const slot = this.names.slotOf(name);
    return slot !== undefined && this.texts[slot] !== absent;
  }

  private setAbsent(rawName: string, text: string, write: WriteTime, isOnce = false): void {
    if (!rawName.isWellFormed()) {
      const name = rawName.toWellFormed();
      if (isOnce) this.setOnce(name, text, write);
      else this.set(name, text, write);
      return;
    }
    const time = write.historical ? (this.heldUnsetTimes.get(rawName) ?? neverInRealtime) : write.timeMicros;
    if (time <= write.timeMicros) this.add(rawName, text, time);
  }

  private add(name: string, text: string, timeMicros: number): void {
    if (text === tooDeep || !this.ensureCapacity(name, text, undefined)) {
      this.rejections += 1;
      return;
    }
    let slot = this.names.slotOf(name);
    if (slot === undefined) {
      slot = this.names.count;
      this.names = this.names.with(name);
    }
    this.texts[slot] = text;
    this.times[slot] = timeMicros;
    if (this.heldUnsetTimes.size > 0) this.heldUnsetTimes.delete(name);
    this.changes += 1;
    this.touches += 1;
  }

  private replace(slot: number, text: string, timeMicros: number): void {
    const present = this.texts[slot]!;
    if (isSameJson(present, text)) {
      this.touch(slot, timeMicros);
      return;
    }
    if (text === tooDeep || !this.ensureCapacity(undefined, text, present)) {
      this.rejections += 1;
      return;
    }
    this.texts[slot] = text;
    this.times[slot] = timeMicros;
    this.changes += 1;
    this.touches += 1;
  }

  /** Records the time of a repeated value. */
  private touch(slot: number, timeMicros: number): void {
    if (this.times[slot] === timeMicros) return;
    this.times[slot] = timeMicros;
    this.touches += 1;
  }

  private remove(name: string, timeMicros: number): void {
    const slot = this.names.slotOf(name);
    if (slot !== undefined && this.texts[slot] !== absent) {
      if (this.bytes !== undefined) this.bytes -= nameBytes(name) + Buffer.byteLength(this.texts[slot]!);
      this.texts[slot] = absent;
      this.hasAbsent = true;
      this.presentNames = undefined;
      this.changes += 1;
      this.touches += 1;
    }
    if (timeMicros === neverInRealtime || name.length > unsetNameLengthMax) return;
    if (this.heldUnsetTimes.get(name) !== timeMicros) this.touches += 1;
    this.heldUnsetTimes.set(name, timeMicros);
  }

  /**
   * Accounts for the bytes of a write. @returns false if the properties grow above the limit
   * @param name of a new value @param present the replaced value
   */
  private ensureCapacity(name: string | undefined, text: string, present: string | undefined): boolean {
    if (this.bytes === undefined) {
      this.bytesMax ??= this.estimate();
      this.bytesMax += bytesAtMost(name, text);
      if (this.bytesMax <= propertyBytesMax) return true;
      this.bytes = this.countBytes();
    }
    const added = (name === undefined ? 0 : nameBytes(name)) + Buffer.byteLength(text);
    const growth = present === undefined ? added : added - Buffer.byteLength(present);
    if (growth > 0 && this.bytes + growth > propertyBytesMax) return false;
    this.bytes += growth;
    return true;
  }

  private estimate(): number {
    let bytes = bracesBytes;
    for (const [slot, text] of this.texts.entries()) bytes += bytesAtMost(this.names.names[slot], text);
    return bytes;
  }

  private countBytes(): number {
    // There is one comma less than members.
    let bytes = bracesBytes - 1;
    for (const [slot, text] of this.texts.entries()) {
      if (text !== absent) bytes += nameBytes(this.names.names[slot]!) + Buffer.byteLength(text);
    }
    return bytes;
  }

  /** Restores the order of JavaScript objects and removes unset names. */
  private arrange(): void {
    const { names } = this.names;
    const slots: Record<string, number> = Object.create(null);
    for (const [slot, text] of this.texts.entries()) if (text !== absent) slots[names[slot]!] = slot;
    const texts = [...this.texts];
    const times = [...this.times];
    this.names = PropertyNames.from(Object.keys(slots));
    this.hasAbsent = false;
    this.texts.length = this.names.count;
    this.times.length = this.names.count;
    for (const [index, slot] of Object.values(slots).entries()) {
      this.texts[index] = texts[slot]!;
      this.times[index] = times[slot]!;
    }
  }
}

const bracesBytes = 2;
/** Colon and comma. */
const memberBytes = 2;

/** Bytes of a member's name in a JSON object, with quotes, escapes and separators. */
function nameBytes(name: string): number {
  return Buffer.byteLength(JSON.stringify(name)) + memberBytes;
}

/** Upper bound of the bytes of name and value, without scanning them. */
function bytesAtMost(name: string | undefined, text: string): number {
  return (name === undefined ? 0 : (name.length + 1) * escapedBytesMax) + text.length * unitBytesMax;
}

/** Maximum bytes per UTF-16 code unit: in UTF-8, and escaped in a name. */
const unitBytesMax = 3;
const escapedBytesMax = 6;
