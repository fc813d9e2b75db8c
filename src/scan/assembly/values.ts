/**
 * Numbers for the values of members, AssemblyScript: most values repeat, and a reader that knows a value's number
 * skips its text.
 */

import { isEqual } from "./json";

/**
 * By hash: hash, position and length of the text, number of its name, and the value's number plus one; 16 bytes each.
 */
const slots: u32 = 32_768;
/** As in `members.ts` of TypeScript. */
const valuesMax: u32 = 20_000;
const textBytesMax: usize = 1024 * 1024;
/** Longer values get no number. */
const lengthMax: u32 = 255;
const probesMax: u32 = 16;
/** As in `members.ts`. */
const namesMax: u32 = 8_000;
/** A name with this many new values, most of them not repeated, gets no more numbers. */
const newMax: u32 = 256;

let slotsAt: usize = 0;
/** Per name: the counts of new and of repeated values; 8 bytes. */
let countsAt: usize = 0;
let textsAt: usize = 0;
let textsEnd: usize = 0;
let known: u32 = 0;

/** Size of the tables of values in bytes. */
export function valueBytes(): i32 {
  return <i32>(((<usize>slots) << 4) + ((<usize>namesMax) << 3) + textBytesMax);
}

/** Clears all values. @param at address of `valueBytes` free bytes. */
export function startValues(at: usize): void {
  slotsAt = at;
  countsAt = slotsAt + ((<usize>slots) << 4);
  textsAt = countsAt + ((<usize>namesMax) << 3);
  textsEnd = textsAt;
  known = 0;
  memory.fill(at, 0, textsAt - at);
}

/** Number of values with numbers. */
export function knownValues(): u32 {
  return known;
}

/** The number of a name's value, from 1; 0 without a number. */
export function numberOfValue(name: u32, at: usize, length: u32): u32 {
  if (length > lengthMax) return 0;
  const counts = countsAt + ((<usize>name) << 3);
  const fresh = load<u32>(counts);
  const repeated = load<u32>(counts, 4);
  if (fresh >= newMax && repeated < fresh) return 0;
  const hash = hashOfAll(at, length, name);
  const key = (name << 8) | length;
  for (let probe: u32 = 0; probe < probesMax; probe++) {
    const slot = slotsAt + (((hash + probe) & (slots - 1)) << 4);
    const number = load<u32>(slot, 12);
    if (number == 0) {
      if (known >= valuesMax || textsEnd + length > textsAt + textBytesMax) return 0;
      memory.copy(textsEnd, at, length);
      store<u32>(slot, hash);
      store<u32>(slot, <u32>textsEnd, 4);
      store<u32>(slot, key, 8);
      store<u32>(slot, ++known, 12);
      textsEnd += length;
      store<u32>(counts, fresh + 1);
      return known;
    }
    if (load<u32>(slot) == hash && load<u32>(slot, 8) == key && isEqual(load<u32>(slot, 4), at, length)) {
      store<u32>(counts, repeated + 1, 4);
      return number;
    }
  }
  return 0;
}

/** Hashes every byte: paths may differ only in the middle. */
@inline
function hashOfAll(at: usize, length: u32, name: u32): u32 {
  let hash: u64 = (<u64>length << 32) | name;
  let index: u32 = 0;
  for (; index + 8 <= length; index += 8) hash = (hash ^ load<u64>(at + index)) * 0x9e3779b97f4a7c15;
  const rest = length - index;
  if (rest > 0) hash = (hash ^ (load<u64>(at + index) & (((<u64>1) << (rest << 3)) - 1))) * 0x9e3779b97f4a7c15;
  return <u32>((hash ^ (hash >> 29)) >> 17);
}
