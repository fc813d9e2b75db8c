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

import { isSameJson, tooDeep } from "../../lib/canonical-json.ts";
import type { PropertyWrites } from "./automatic-properties.ts";
import { PropertyNames } from "./property-names.ts";

/** Size of the properties as JSON beyond which writes that make them larger are refused, in bytes. */
export const propertyBytesMax = 512 * 1024;

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

/** What a bag is made of; the lists have an item for each name. */
export interface BagContent {
  names: PropertyNames;
  /** As `canonicalJson` writes them. */
  texts: string[];
  /** Of the last realtime write; negative infinity where only history has written. */
  times: number[];
  /** Names that are absent because they were unset, and the time of the last realtime write or unset before. */
  unsetTimes: Map<string, number>;
}

function emptyContent(): BagContent {
  return { names: PropertyNames.none, texts: [], times: [], unsetTimes: new Map() };
}

/** Stands for the text of a name that was unset; its time means nothing then. */
const absent = "";

/**
 * Names are kept well-formed: halves of surrogate pairs do not survive storage, and writes of a name must meet. Values are
 * texts of JSON: most are read from one and written into another one.
 */
export class PropertyBag {
  readonly unsetTimes: ReadonlyMap<string, number>;
  /** Writes after which a value is another one than before, since `settle`. */
  changes = 0;
  /** Writes that changed a value or a time. */
  touches = 0;
  /** Writes that were refused for their size or depth. */
  refusals = 0;
  private names: PropertyNames;
  /** A text may be `absent`. */
  private hasAbsent = false;
  /** Names of which all have a value. */
  private presentNames: readonly string[] | undefined;
  private readonly texts: string[];
  private readonly times: number[];
  private readonly heldUnsetTimes: Map<string, number>;
  /** At least as many bytes as the properties take as JSON; estimated when something is first written. */
  private bytesMax: number | undefined;
  /** Those bytes, counted when the estimate is too large. */
  private bytes: number | undefined;

  constructor(content: BagContent = emptyContent()) {
    this.names = content.names;
    this.texts = content.texts;
    this.times = content.times;
    this.heldUnsetTimes = content.unsetTimes;
    this.unsetTimes = this.heldUnsetTimes;
  }

  /** What was written is stored. */
  settle(): void {
    this.changes = 0;
  }

  /** The properties, in the order in which JavaScript's objects have them; not to be changed. */
  get content(): Readonly<Omit<BagContent, "unsetTimes">> {
    if (this.names.haveIndexes || this.hasAbsent) this.arrange();
    const { names, texts, times } = this;
    return { names, texts, times };
  }

  /** The texts of some values that there are. */
  textsOf(names: readonly string[]): string[] {
    const slots = this.names.slotsOf(names);
    return slots.flatMap((slot) => (slot === -1 || this.texts[slot] === absent ? [] : [this.texts[slot]!]));
  }

  /** The time of the last realtime write of a value that is present; negative infinity when there was none. */
  timeOf(name: string): number {
    return this.times[this.names.slotOf(name)!]!;
  }

  /** @param text as `canonicalJson` writes it. */
  set(name: string, text: string, write: WriteTime): void {
    const slot = this.names.slotOf(name);
    if (slot === undefined || this.texts[slot] === absent) this.setAbsent(name, text, write);
    else if (!write.historical) this.replace(slot, text, write.timeMicros);
    else if (this.times[slot]! <= write.timeMicros) this.replace(slot, text, this.times[slot]!);
  }

  /** Sets the values of members; most repeat what is here. */
  setMembers({ members, names, places }: PropertyWrites, write: WriteTime): void {
    const slots = this.names.slotsOf(names);
    const { texts } = this;
    for (let index = 0; index < places.length; index++) {
      const place = places[index]!;
      const slot = slots[index]!;
      // A name keeps its slot, also in a list with more names.
      const isRepeated = slot !== -1 && !write.historical && members.isText(place, texts[slot]!);
      if (!isRepeated) {
        this.set(names[index]!, members.text(place), write);
        continue;
      }
      // The same string as others have is compared without looking at its characters the next time.
      if (members.number(place) !== 0) texts[slot] = members.text(place);
      this.touch(slot, write.timeMicros);
    }
  }

  /** Writes unless there is a value; null is a value. */
  setOnce(name: string, text: string, write: WriteTime): void {
    if (!this.has(name)) this.setAbsent(name, text, write, true);
  }

  /** Writes the values of members where there are none; usually there are. */
  setMembersOnce({ members, names, places }: PropertyWrites, write: WriteTime): void {
    if (names === this.presentNames) return;
    const slots = this.names.slotsOf(names);
    let areAllPresent = true;
    for (let index = 0; index < places.length; index++) {
      const slot = slots[index]!;
      // A name keeps its slot, also in a list with more names.
      if (slot !== -1 && this.texts[slot] !== absent) continue;
      areAllPresent = false;
      this.setOnce(names[index]!, members.text(places[index]!), write);
    }
    if (areAllPresent) this.presentNames = names;
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
    const theirs = other.content;
    for (const [index, name] of theirs.names.names.entries()) {
      const timeMicros = theirs.times[index]!;
      const isPresent = this.has(name);
      if (!this.isTakenOver(name, !isPresent, timeMicros, merge)) continue;
      if (isPresent) this.replace(this.names.slotOf(name)!, theirs.texts[index]!, timeMicros);
      else this.add(name, theirs.texts[index]!, timeMicros);
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
    if (!this.has(name)) return theirTime > ourTime;
    return merge.historical && theirTime > merge.timeMicros && theirTime > ourTime;
  }

  /** When a name was last written or unset in realtime; undefined for a name of which nothing is known. */
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
    if (text === tooDeep || !this.makeRoom(name, text, undefined)) {
      this.refusals += 1;
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
    if (text === tooDeep || !this.makeRoom(undefined, text, present)) {
      this.refusals += 1;
      return;
    }
    this.texts[slot] = text;
    this.times[slot] = timeMicros;
    this.changes += 1;
    this.touches += 1;
  }

  /** A value was written again. */
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
   * Counts the bytes that a write adds; false when they do not fit and are more than before.
   *
   * @param name of a value that is new.
   * @param present the text that is replaced.
   */
  private makeRoom(name: string | undefined, text: string, present: string | undefined): boolean {
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
    // Of the commas one is too many.
    let bytes = bracesBytes - 1;
    for (const [slot, text] of this.texts.entries()) {
      if (text !== absent) bytes += nameBytes(this.names.names[slot]!) + Buffer.byteLength(text);
    }
    return bytes;
  }

  /** Gives every name its place, and none to those that were unset. */
  private arrange(): void {
    const { names } = this.names;
    const slots: Record<string, number> = Object.create(null);
    for (const [slot, text] of this.texts.entries()) if (text !== absent) slots[names[slot]!] = slot;
    const texts = [...this.texts];
    const times = [...this.times];
    this.names = PropertyNames.of(Object.keys(slots));
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

/** Bytes of a name within a JSON object, with what stands around it. */
function nameBytes(name: string): number {
  return Buffer.byteLength(JSON.stringify(name)) + memberBytes;
}

/** At least as many bytes as name and value take, without looking at their characters. */
function bytesAtMost(name: string | undefined, text: string): number {
  return (name === undefined ? 0 : (name.length + 1) * escapedBytesMax) + text.length * unitBytesMax;
}

/** A UTF-16 unit takes at most so many bytes in UTF-8, and escaped in a name. */
const unitBytesMax = 3;
const escapedBytesMax = 6;
