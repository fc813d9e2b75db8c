/**
 * Reads the lines of an import file, one record each, and converts simple records to events, AssemblyScript.
 *
 * The import declares what the members of a record mean in the format of its file. All other records are left to the
 * import, which contains the rules for records.
 */

import { closeBrace, comma, letterN, newline, openBrace, openBracket, quote } from "./codes";
import { isPlainString, isUuid, isVisible } from "./item";
import {
  startItem,
  startObject,
  startString,
  endOfName,
  endOfValue,
  groupsAt,
  hasChainInside,
  hashOf,
  hasLineBreak,
  isUnstorable,
  nameHash,
  nameLength,
  skipSpace,
} from "./json";
import { addName, findName, tableBytes } from "./name-table";
import * as names from "./names";
import { byte, bytes, out, copyPart, writeAt, writeText } from "./output";
import { instantOf } from "./time";

/** Meaning of a record's member for the event; as in `record-copier.ts`. */
const eventMember: u32 = 1;
const idMember: u32 = 2;
const uuidMember: u32 = 3;
const timeMember: u32 = 4;
const propertiesMember: u32 = 5;
const chainMember: u32 = 6;
const otherUuidMember: u32 = 7;
const members: u32 = 8;
/** It repeats a part of the event in another form: a record where it has a value needs the slow path. */
const isCarried: u32 = 8;
/** It is not a property; `isLeftOutWithMarks`: only in records with all marks. Unknown members are properties. */
const isLeftOut: u32 = 16;
const isLeftOutWithMarks: u32 = 32;
/** From here on: the bit of a mark. */
const markShift: u32 = 6;
const marksMax: u32 = 15;
/** From here on: the number of an omitted member, 1 to 63. Each line reports which of them have a value. */
const omittedShift: u32 = 10;
const omittedMax: u32 = 63;
/** As in `event-draft.ts`. */
const groupTypesMax: u32 = 5;

/** Members with their meanings, their names, and the texts around the parts of an event. */
const table: usize = 48 * 1024;
const namesAt: usize = table + tableBytes;
const partsAt: usize = 63 * 1024;

/** Start and end of a record's values, by meaning. */
const placesAt: usize = 512;

/**
 * A line: start and end of its text, start and end of the event copied from it (0 if none), and a bit for each
 * omitted member with a value.
 */
const lineBytes: usize = 24;
/** Addresses of the end of the input read and of the output, for `record-copier.ts`. */
const readEndAt: usize = 96;
const outEndAt: usize = 100;
/** Upper limit of the texts around the parts of an event. */
const frameBytes: usize = 256;

let namesEnd: usize = namesAt;
let partsEnd: usize = partsAt;
let knownMarks: u32 = 0;
let isTimeFreeWithMarks: bool = false;
/** The omitted member that contains the UUID if `uuid` is missing. */
let otherUuidBit: u64 = 0;
let omittedBits: u64 = 0;

/** Stores a text around a part of an event. */
function around(text: string): usize {
  const at = partsEnd;
  const length = writeText(at + 8, text);
  store<u32>(at, <u32>(at + 8));
  store<u32>(at, length, 4);
  partsEnd = at + 8 + length;
  return at;
}
const beforeUuid = around('{"uuid":');
const beforeName = around(',"event":');
const beforeId = around(',"distinct_id":');
const beforeTime = around(',"timestamp":');
const beforeProperties = around(',"properties":');
const beforeChain = around('"$elements_chain":');

/** Clears all members. @param isTimeFree records with all marks may have any time in the past. */
export function startMembers(isTimeFree: bool): void {
  memory.fill(table, 0, tableBytes);
  namesEnd = namesAt;
  knownMarks = 0;
  otherUuidBit = 0;
  isTimeFreeWithMarks = isTimeFree;
}

/** Declares a member. @returns false if the table is full. */
export function knowMember(name: usize, length: u32, meaning: u32): bool {
  // At least eight bytes are read, also of shorter names.
  if (namesEnd + max<u32>(length, 8) > partsAt) return false;
  memory.copy(namesEnd, name, length);
  addName(table, namesEnd, length, meaning);
  namesEnd += max<u32>(length, 8);
  knownMarks |= (meaning >> markShift) & marksMax;
  if ((meaning & (members - 1)) == otherUuidMember) otherUuidBit = omittedBit(meaning);
  return true;
}

/**
 * Reads lines and writes the events of simple records, each followed by a comma.
 *
 * @param text     UTF-8, followed by 16 zero bytes.
 * @param table    receives the result of each line.
 * @param earliest epoch microseconds: records with earlier or later times need the slow path.
 * @returns the number of lines read.
 */
export function copyRecords(
  text: usize,
  end: usize,
  table: usize,
  linesMax: i32,
  output: usize,
  outputEnd: usize,
  earliest: f64,
  latest: f64,
): i32 {
  startString();
  writeAt(output);
  let count = 0;
  let at = text;
  for (; at < end && count < linesMax; count++) {
    const line = table + <usize>count * lineBytes;
    const from = out;
    const behind = copyRecord(at, outputEnd, <i64>earliest, <i64>latest);
    const next = behind == 0 ? 0 : endOfLine(behind, end);
    store<u32>(line, <u32>at);
    if (next == 0) {
      writeAt(from);
      const lineEnd = endOfText(at, end);
      store<u32>(line, <u32>lineEnd, 4);
      store<u64>(line, 0, 8);
      store<u64>(line, 0, 16);
      at = lineEnd + 1;
    } else {
      store<u32>(line, <u32>behind, 4);
      store<u32>(line, <u32>from, 8);
      store<u32>(line, <u32>out, 12);
      store<u64>(line, omittedBits, 16);
      byte(comma);
      at = next;
    }
  }
  store<u32>(readEndAt, <u32>at);
  store<u32>(outEndAt, <u32>out);
  return count;
}

/** The start of the next line if only white space precedes it; else 0. */
function endOfLine(at: usize, end: usize): usize {
  while (at < end) {
    const code = load<u8>(at);
    if (code == newline) return at + 1;
    if (code != 32 && code != 9 && code != 13) return 0;
    at++;
  }
  return end;
}

/** The next line break, or the end. */
function endOfText(at: usize, end: usize): usize {
  for (; at < end; at += 16) {
    const mask = i8x16.bitmask(i8x16.eq(v128.load(at), i8x16.splat(newline)));
    if (mask != 0) return min<usize>(at + ctz(mask), end);
  }
  return end;
}

/** @returns the position after the record; 0 if it needs the slow path. */
function copyRecord(at: usize, outputEnd: usize, earliest: i64, latest: i64): usize {
  startItem();
  memory.fill(placesAt, 0, members << 3);
  while (load<u8>(at) == 32) at++;
  const start = at;
  if (load<u8>(at) != openBrace || startObject() == 0) return 0;
  let marks: u32 = 0;
  let needsMarks = false;
  omittedBits = 0;
  at = skipSpace(at + 1);
  while (true) {
    const nameAt = at + 1;
    at = endOfName(at);
    if (at == 0) return 0;
    const meaning = findName(table, nameAt, nameLength, nameHash);
    const valueAt = at;
    at = endOfValue(at, 3);
    if (at == 0) return 0;
    const member = meaning & (members - 1);
    if (member != 0 && !recordMember(member, valueAt, at)) return 0;
    const isFilled = hasValue(valueAt, at);
    if ((meaning & isCarried) != 0 && isFilled) return 0;
    const isKnown = member != 0 || (meaning & (isCarried | isLeftOut | isLeftOutWithMarks)) != 0;
    if (!isKnown && load<u8>(valueAt) != letterN) return 0;
    if ((meaning & isLeftOutWithMarks) != 0) needsMarks = true;
    marks |= (meaning >> markShift) & marksMax;
    const bit = omittedBit(meaning);
    // The last of repeated names applies.
    omittedBits = isFilled ? omittedBits | bit : omittedBits & ~bit;
    at = skipSpace(at);
    // Text after the line is not part of the record.
    if (hasLineBreak) return 0;
    const next = load<u8>(at);
    if (next == closeBrace) break;
    if (next != comma) return 0;
    at = skipSpace(at + 1);
  }
  at++;
  if (isUnstorable || out + (at - start) + frameBytes > outputEnd) return 0;
  const hasMarks = knownMarks != 0 && marks == knownMarks;
  if (needsMarks && !hasMarks) return 0;
  // Records with all marks were exported by Flagkeep and have no time limit.
  if (groupsAt != 0 && !hasMarks && hasManyMembers(groupsAt)) return 0;
  // Which of the two chains applies depends on whether they have a value.
  if (hasChainInside && startOf(chainMember) != 0) return 0;
  return write(earliest, latest, isTimeFreeWithMarks && hasMarks) ? at : 0;
}

/** Whether an object that was already read has more members than an imported event may have groups. */
function hasManyMembers(at: usize): bool {
  if (load<u8>(at) != openBrace) return false;
  at = skipSpace(at + 1);
  let count: u32 = 0;
  while (load<u8>(at) != closeBrace) {
    at = skipSpace(endOfValue(endOfName(at), 5));
    if (load<u8>(at) == comma) at = skipSpace(at + 1);
    count++;
  }
  return count > groupTypesMax;
}

@inline
function omittedBit(meaning: u32): u64 {
  const number = (meaning >> omittedShift) & omittedMax;
  return number == 0 ? 0 : <u64>1 << number;
}

/** Whether a value is neither null nor an empty string, list or object. */
function hasValue(start: usize, end: usize): bool {
  const first = load<u8>(start);
  if (first == letterN) return false;
  if (first == quote) return end - start > 2;
  if (first != openBrace && first != openBracket) return true;
  return skipSpace(start + 1) + 1 < end;
}

/** The last of repeated names applies, as in JSON.parse. @returns false if the record needs the slow path. */
function recordMember(member: u32, start: usize, end: usize): bool {
  const place = placesAt + (member << 3);
  store<u32>(place, <u32>start);
  store<u32>(place, <u32>end, 4);
  switch (member) {
    case eventMember:
      return isPlainString(start, end) && isVisible(start + 1, end - 1) && isFastPathEvent(start + 1, end - 1);
    case idMember:
      return isPlainString(start, end) && isVisible(start + 1, end - 1);
    case timeMember:
      return isPlainString(start, end);
    case uuidMember:
    case otherUuidMember:
      return isPlainString(start, end) && end - start == 38 && isUuid(start + 1);
    case propertiesMember:
      return load<u8>(start) == openBrace;
    default:
      return true;
  }
}

function isFastPathEvent(start: usize, end: usize): bool {
  const length = <u32>(end - start);
  return names.numberOf(start, length, hashOf(start, length)) != names.slowPathEvent;
}

function write(earliest: i64, latest: i64, isTimeFree: bool): bool {
  const uuid = startOf(uuidMember) != 0 ? uuidMember : otherUuidMember;
  if (uuid == otherUuidMember) omittedBits &= ~otherUuidBit;
  const isWhole =
    startOf(uuid) != 0 && startOf(eventMember) != 0 && startOf(idMember) != 0 && startOf(propertiesMember) != 0;
  const time = startOf(timeMember);
  // A number has other rules than `2026-…`.
  if (!isWhole || time == 0 || load<u8>(time, 5) != 45) return false;
  const micros = instantOf(time + 1, <i32>(endOf(timeMember) - time - 2));
  const first = isTimeFree ? 0 : earliest;
  if (micros < first || micros > latest) return false;
  copyPart(beforeUuid);
  value(uuid);
  copyPart(beforeName);
  value(eventMember);
  copyPart(beforeId);
  value(idMember);
  copyPart(beforeTime);
  value(timeMember);
  copyPart(beforeProperties);
  properties();
  byte(closeBrace);
  return true;
}

/** Writes the properties, including the chain of elements that is next to them in the record. */
function properties(): void {
  const start = startOf(propertiesMember);
  const chain = startOf(chainMember);
  const hasChain = chain != 0 && load<u8>(chain) == quote && endOf(chainMember) - chain > 2;
  if (!hasChain) {
    value(propertiesMember);
    return;
  }
  byte(openBrace);
  copyPart(beforeChain);
  value(chainMember);
  if (load<u8>(skipSpace(start + 1)) != closeBrace) byte(comma);
  bytes(start + 1, endOf(propertiesMember) - start - 1);
}

@inline
function startOf(member: u32): usize {
  return load<u32>(placesAt + (member << 3));
}

@inline
function endOf(member: u32): usize {
  return load<u32>(placesAt + (member << 3), 4);
}

function value(member: u32): void {
  const start = startOf(member);
  bytes(start, endOf(member) - start);
}
