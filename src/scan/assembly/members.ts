/**
 * Finds the members of a JSON object without creating values, AssemblyScript: for readers that need a few members and
 * compare the others with earlier objects. Names are numbered, with the same numbers for all objects.
 */

import { closeBrace, comma, openBrace, openBracket, quote } from "./codes";
import {
  startObject,
  startString,
  endOfNewName,
  endOfValue,
  escapes,
  isEqual,
  isUnstorable,
  nameHash,
  nameLength,
  skipSpace,
} from "./json";
import { numberOfValue } from "./values";

/** One member, 16 bytes. */
const memberBytes: usize = 16;
const memberName: usize = 0;
const memberAt: usize = 4;
const memberEnd: usize = 8;
/** The number of its value; the lowest bit is set if its text is what `JSON.stringify` would write. */
const memberValue: usize = 12;

/** Names by hash: hash, position, length and the number plus one, 16 bytes each; then the names themselves. */
const nameSlots: u32 = 16_384;
const namesMax: u32 = 8_000;
const nameBytesMax: usize = 512 * 1024;
const nameLengthMax: u32 = 200;
const probesMax: u32 = 32;
/** `JSON.stringify` may write longer integers differently than they were sent. */
const digitsMax: usize = 15;

let namesAt: usize = 0;
let textsAt: usize = 0;
let textsEnd: usize = 0;
let known: u32 = 0;
let shape: u32 = 0;

/** Size of the tables of names in bytes. */
export function nameBytes(): i32 {
  return <i32>(((<usize>nameSlots) << 4) + nameBytesMax);
}

/** Clears all names. @param at address of `nameBytes` free bytes. */
export function startNames(at: usize): void {
  namesAt = at;
  textsAt = at + ((<usize>nameSlots) << 4);
  textsEnd = textsAt;
  known = 0;
  memory.fill(at, 0, (<usize>nameSlots) << 4);
}

/** Hash of the names of the last object, in their order. */
export function shapeHash(): u32 {
  return shape;
}

/** Number of known names. */
export function knownNames(): u32 {
  return known;
}

/** End of the known names, one per line. */
export function namesEnd(): usize {
  return textsEnd;
}

/**
 * Records the members of an object.
 *
 * @param at    its first byte; 16 bytes after `end` must be readable.
 * @param table receives the members, 16 bytes each, up to `tableEnd`.
 * @returns their number; -1 if the text needs the slow path: repeated or escaped names, too many members or levels,
 *          strings that cannot be stored, or no JSON object.
 */
export function members(at: usize, end: usize, table: usize, tableEnd: usize): i32 {
  startString();
  shape = 0x811c9dc5;
  const object = startObject();
  if (load<u8>(at) != openBrace) return -1;
  at = skipSpace(at + 1);
  let place = table;
  if (load<u8>(at) == closeBrace) return at + 1 == end ? 0 : -1;
  while (at < end && place + memberBytes <= tableEnd) {
    const nameAt = at + 1;
    const valueAt = endOfNewName(at, object);
    if (valueAt == 0) return -1;
    const name = numberOf(nameAt, nameLength, nameHash);
    if (name < 0) return -1;
    const valueEnd = endOfValue(valueAt, 2);
    if (valueEnd == 0) return -1;
    store<u32>(place, <u32>name, memberName);
    store<u32>(place, <u32>valueAt, memberAt);
    store<u32>(place, <u32>valueEnd, memberEnd);
    const value = numberOfValue(<u32>name, valueAt, <u32>(valueEnd - valueAt)) << 1;
    store<u32>(place, isCanonical(valueAt, valueEnd) ? value | 1 : value, memberValue);
    shape = (shape ^ <u32>name) * 0x01000193;
    place += memberBytes;
    at = skipSpace(valueEnd);
    const code = load<u8>(at);
    if (code == closeBrace) return at + 1 == end && !isUnstorable ? <i32>((place - table) / memberBytes) : -1;
    if (code != comma) return -1;
    at = skipSpace(at + 1);
  }
  return -1;
}

/** The value is the last one read. */
@inline
function isCanonical(at: usize, end: usize): bool {
  const code = load<u8>(at);
  if (code == quote) return escapes != 2;
  if (code == openBrace || code == openBracket) return false;
  return code > 57 || isWholeNumber(at, end);
}

/** Without fraction, exponent and negative zero. */
function isWholeNumber(at: usize, end: usize): bool {
  if (load<u8>(at) == 45) {
    at++;
    if (load<u8>(at) == 48) return false;
  }
  if (end - at > digitsMax) return false;
  for (; at < end; at++) {
    if (load<u8>(at) < 48 || load<u8>(at) > 57) return false;
  }
  return true;
}

/** The number of a name, new if unknown; -1 if the table is full or the name too long. */
function numberOf(at: usize, length: u32, hash: u32): i32 {
  if (length > nameLengthMax) return -1;
  for (let probe: u32 = 0; probe < probesMax; probe++) {
    const slot = namesAt + (((hash + probe) & (nameSlots - 1)) << 4);
    const number = load<u32>(slot, 12);
    if (number == 0) return addName(slot, at, length, hash);
    const isSame =
      load<u32>(slot) == hash && load<u32>(slot, 8) == length && isEqual(load<u32>(slot, 4), at, length);
    if (isSame) return <i32>number - 1;
  }
  return -1;
}

function addName(slot: usize, at: usize, length: u32, hash: u32): i32 {
  if (known >= namesMax || textsEnd + length + 1 > textsAt + nameBytesMax) return -1;
  memory.copy(textsEnd, at, length);
  store<u32>(slot, hash);
  store<u32>(slot, <u32>textsEnd, 4);
  store<u32>(slot, length, 8);
  store<u32>(slot, ++known, 12);
  store<u8>(textsEnd + length, 10);
  textsEnd += length + 1;
  return <i32>known - 1;
}
