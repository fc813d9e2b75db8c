/** Hash tables of names, each with a number other than 0, AssemblyScript. Zero bytes are an empty table. */

import { hashOf, isEqual } from "./json";

/** Eight bytes each: position, length and number of a name. */
const slots: u32 = 256;
export const tableBytes: usize = (<usize>slots) << 3;

/**
 * Adds a name without copying its text. At least one slot must stay free, or a search for an unknown name never ends.
 */
export function addName(table: usize, at: usize, length: u32, number: u32): void {
  let slot = hashOf(at, length) & (slots - 1);
  while (load<u16>(table + (slot << 3), 6) != 0) slot = (slot + 1) & (slots - 1);
  const place = table + (slot << 3);
  store<u32>(place, <u32>at);
  store<u16>(place, <u16>length, 4);
  store<u16>(place, <u16>number, 6);
}

/** The number of a name; 0 if unknown. @param hash from `hashOf` */
@inline
export function findName(table: usize, at: usize, length: u32, hash: u32): u32 {
  let slot = hash & (slots - 1);
  while (true) {
    const place = table + (slot << 3);
    const number = <u32>load<u16>(place, 6);
    if (number == 0) return 0;
    if (load<u16>(place, 4) == length && isEqual(load<u32>(place), at, length)) return number;
    slot = (slot + 1) & (slots - 1);
  }
}
