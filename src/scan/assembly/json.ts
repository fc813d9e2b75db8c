/**
 * Scans the JSON text of a request, AssemblyScript. Reads each byte once, 16 at a time in strings.
 *
 * Every function takes the position where a token or value starts and returns the position after it, or 0. 0 means
 * that the request needs the slow path (`payload.ts`), which handles all cases and reports errors. A false 0 is
 * allowed, a false acceptance is not: accepted texts are valid for `JSON.parse`, without repeated or escaped member
 * names. Zero bytes follow the text and end every loop.
 */

import { backslash, closeBrace, closeBracket, colon, comma, quote } from "./codes";

/** Real events have a few levels; deeper ones need the slow path. */
const levelsMax: i32 = 60;
/** As in `payload.ts`. */
const containersMax: i32 = 1_000_000;
/** Member names stored to find repeated ones, within one event. */
const namesMax: i32 = 512;
const probesMax: u32 = 32;

/** Address of the stored names: 16 bytes each. */
const namesAt: usize = 4096;
const nameSlots: u32 = 1024;

/** Escapes of the last string: 0 none, 1 short ones, 2 `\u` or `\/`. */
export let escapes: i32 = 0;
/** A line break occurred between two tokens. */
export let hasLineBreak: bool = false;
/** A string that cannot be stored unchanged occurred: it has NUL or an unpaired surrogate. */
export let isUnstorable: bool = false;
/** Length and hash of the last name. */
export let nameLength: u32 = 0;
export let nameHash: u32 = 0;

let containers: i32 = 0;
let names: i32 = 0;
/** Objects are numbered, across texts. */
let objects: u32 = 0;
/** Names of objects before this one are ignored. */
let firstObject: u32 = 0;

/** Prepares for a new text. */
export function startString(): void {
  containers = 0;
  if (objects > 0x7000_0000) {
    objects = 0;
    memory.fill(namesAt, 0, nameSlots << 4);
  }
  startItem();
}

/** Position of the value of the item's last member `$groups`; 0 if absent. */
export let groupsAt: usize = 0;
/** Whether the item contains a member `$elements_chain`. */
export let hasChainInside: bool = false;
/** `$groups` and the quote after it. */
const groupsName: u64 = 0x2273_7075_6f72_6724;
/** First and last eight bytes of `$elements_chain`. */
const chainStart: u64 = 0x746e_656d_656c_6524;
const chainEnd: u64 = 0x6e69_6168_635f_7374;

/** Prepares for a new event. */
export function startItem(): void {
  hasLineBreak = false;
  groupsAt = 0;
  hasChainInside = false;
  isUnstorable = false;
  firstObject = objects + 1;
  names = 0;
}

/** The number of a new object; 0 if there are too many. */
export function startObject(): u32 {
  if (++containers > containersMax) return 0;
  return ++objects;
}

/** Position of the first byte that is not white space. */
@inline
export function skipSpace(at: usize): usize {
  return load<u8>(at) > 32 ? at : endOfSpace(at);
}

function endOfSpace(at: usize): usize {
  while (true) {
    const code = load<u8>(at);
    if (code > 32) return at;
    if (code == 10 || code == 13) hasLineBreak = true;
    else if (code != 32 && code != 9) return at;
    at++;
  }
}

/** @param at position of the opening quote. */
export function endOfString(at: usize): usize {
  at++;
  escapes = 0;
  while (true) {
    const chunk = v128.load(at);
    const ends = v128.or(i8x16.eq(chunk, i8x16.splat(34)), i8x16.eq(chunk, i8x16.splat(92)));
    const mask = i8x16.bitmask(v128.or(ends, i8x16.lt_u(chunk, i8x16.splat(32))));
    if (mask == 0) {
      at += 16;
      continue;
    }
    at += ctz(mask);
    const code = load<u8>(at);
    if (code == quote) return at + 1;
    if (code != backslash) return 0;
    at = endOfEscape(at + 1);
    if (at == 0) return 0;
  }
}

/** @param at position after the backslash. */
function endOfEscape(at: usize): usize {
  const code = load<u8>(at);
  switch (code) {
    case 34: // "
    case 92: // \
    case 98: // b
    case 102: // f
    case 110: // n
    case 114: // r
    case 116: // t
      if (escapes == 0) escapes = 1;
      return at + 1;
    case 47: // /
      escapes = 2;
      return at + 1;
    case 117: // u
      break;
    default:
      return 0;
  }
  escapes = 2;
  const unit = hexUnit(at + 1);
  if (unit < 0) return 0;
  at += 5;
  if (unit == 0 || (unit & 0xfc00) == 0xdc00) isUnstorable = true;
  else if ((unit & 0xfc00) == 0xd800) {
    const isPair = load<u8>(at) == backslash && load<u8>(at, 1) == 117 && (hexUnit(at + 2) & 0xfc00) == 0xdc00;
    if (isPair) return at + 6;
    isUnstorable = true;
  }
  return at;
}

/** Value of four hexadecimal digits; -1 if invalid. */
function hexUnit(at: usize): i32 {
  let unit = 0;
  for (let end = at + 4; at < end; at++) {
    const code = <i32>load<u8>(at);
    const letter = (code | 32) - 97;
    if (code >= 48 && code <= 57) unit = (unit << 4) | (code - 48);
    else if (letter >= 0 && letter < 6) unit = (unit << 4) | (letter + 10);
    else return -1;
  }
  return unit;
}

@inline
function isDigit(code: u8): bool {
  return code >= 48 && code <= 57;
}

@inline
function endOfDigits(at: usize): usize {
  if (!isDigit(load<u8>(at))) return 0;
  do at++;
  while (isDigit(load<u8>(at)));
  return at;
}

@inline
function endOfNumber(at: usize): usize {
  if (load<u8>(at) == 45) at++;
  if (load<u8>(at) == 48) at++;
  else {
    at = endOfDigits(at);
    if (at == 0) return 0;
  }
  if (load<u8>(at) == 46) {
    at = endOfDigits(at + 1);
    if (at == 0) return 0;
  }
  if ((load<u8>(at) | 32) == 101) {
    const sign = load<u8>(at, 1);
    at = endOfDigits(sign == 43 || sign == 45 ? at + 2 : at + 1);
  }
  return at;
}

/** @param level nesting level of the value, if it is an object or an array. */
export function endOfValue(at: usize, level: i32): usize {
  const code = load<u8>(at);
  switch (code) {
    case 34:
      return endOfString(at);
    case 123:
      return endOfObject(at, level);
    case 91:
      return endOfArray(at, level);
    case 116: // true
      return load<u32>(at) == 0x65757274 ? at + 4 : 0;
    case 102: // false
      return load<u32>(at, 1) == 0x65736c61 ? at + 5 : 0;
    case 110: // null
      return load<u32>(at) == 0x6c6c756e ? at + 4 : 0;
    default:
      return endOfNumber(at);
  }
}

function endOfArray(at: usize, level: i32): usize {
  if (level > levelsMax || ++containers > containersMax) return 0;
  at = skipSpace(at + 1);
  if (load<u8>(at) == closeBracket) return at + 1;
  while (true) {
    at = endOfValue(at, level + 1);
    if (at == 0) return 0;
    at = skipSpace(at);
    const code = load<u8>(at);
    if (code == closeBracket) return at + 1;
    if (code != comma) return 0;
    at = skipSpace(at + 1);
  }
}

function endOfObject(at: usize, level: i32): usize {
  const object = startObject();
  if (level > levelsMax || object == 0) return 0;
  at = skipSpace(at + 1);
  if (load<u8>(at) == closeBrace) return at + 1;
  while (true) {
    const valueAt = endOfNewName(at, object);
    if (valueAt == 0) return 0;
    if (nameLength == 7 && load<u64>(at + 1) == groupsName) groupsAt = valueAt;
    else if (nameLength == 15 && load<u64>(at + 1) == chainStart && load<u64>(at + 8) == chainEnd)
      hasChainInside = true;
    at = endOfValue(valueAt, level + 1);
    if (at == 0) return 0;
    at = skipSpace(at);
    const code = load<u8>(at);
    if (code == closeBrace) return at + 1;
    if (code != comma) return 0;
    at = skipSpace(at + 1);
  }
}

/** Position of the value after a name, which is hashed; 0 for a name with escapes. */
@inline
export function endOfName(at: usize): usize {
  const end = endOfNameItself(at);
  return end == 0 ? 0 : behindColon(end);
}

/** Like `endOfName`; 0 also for a name that the object already has. */
@inline
export function endOfNewName(at: usize, object: u32): usize {
  const end = endOfNameItself(at);
  return end == 0 || !isNew(at + 1, nameLength, object) ? 0 : behindColon(end);
}

@inline
function endOfNameItself(at: usize): usize {
  if (load<u8>(at) != quote) return 0;
  const end = endOfString(at);
  if (end == 0 || escapes != 0) return 0;
  nameLength = <u32>(end - at - 2);
  nameHash = hashOf(at + 1, nameLength);
  return end;
}

@inline
function behindColon(at: usize): usize {
  at = skipSpace(at);
  return load<u8>(at) == colon ? skipSpace(at + 1) : 0;
}

/** Hash of the length and at most 16 bytes: names with equal hashes are compared. */
@inline
export function hashOf(at: usize, length: u32): u32 {
  let head = load<u64>(at);
  let tail: u64 = 0;
  if (length > 8) tail = load<u64>(at + length - 8);
  else if (length < 8) head &= ((<u64>1) << (length << 3)) - 1;
  const mixed = (head ^ (tail * 0x9fb21c651e98df25) ^ length) * 0x9e3779b97f4a7c15;
  return <u32>((mixed ^ (mixed >> 29)) >> 17);
}

@inline
function isNew(at: usize, length: u32, object: u32): bool {
  if (++names > namesMax) return false;
  const hash = nameHash;
  for (let probe: u32 = 0; probe < probesMax; probe++) {
    const slot = namesAt + (((hash + probe) & (nameSlots - 1)) << 4);
    const owner = load<u32>(slot);
    if (owner < firstObject) {
      store<u32>(slot, object);
      store<u32>(slot, hash, 4);
      store<u32>(slot, <u32>at, 8);
      store<u32>(slot, length, 12);
      return true;
    }
    const isSame =
      owner == object &&
      load<u32>(slot, 4) == hash &&
      load<u32>(slot, 12) == length &&
      isEqual(load<u32>(slot, 8), at, length);
    if (isSame) return false;
  }
  return false;
}

/** Whether two byte ranges are equal. */
export function isEqual(one: usize, other: usize, length: u32): bool {
  let index: u32 = 0;
  for (; index + 8 <= length; index += 8) {
    if (load<u64>(one + index) != load<u64>(other + index)) return false;
  }
  for (; index < length; index++) {
    if (load<u8>(one + index) != load<u8>(other + index)) return false;
  }
  return true;
}
