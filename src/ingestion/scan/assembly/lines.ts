/**
 * Writes the lines of the events that `events.ts` has found, AssemblyScript: as `EntryWriter` writes them, with the
 * properties as `event-properties.ts` edits them.
 */

import { Cut, cutBytes, Item, itemBytes } from "./events";
import * as names from "./names";

/** Epoch microseconds of a text of any form; NaN when it is no time. */
declare function timeOf(text: usize, length: i32): f64;
/** Writes a new uuid to a place. */
declare function makeUuid(at: usize): void;

const comma: u8 = 44;
const openBrace: u8 = 123;
const closeBrace: u8 = 125;
const hourMicros: i64 = 3_600_000_000;
/** As in `event-time.ts`. */
const futureMicrosMax: i64 = 23 * hourMicros;
const historicalFutureMicros: i64 = hourMicros;
/** In the year 2255; numbers up to here are whole in JavaScript, too. */
const microsMax: i64 = 9_000_000_000_000_000;
const dayMicros: i64 = 86_400_000_000;

/** The texts that lines are made of besides those of events, as place and length, in the order of `scanner.ts`. */
const piecesAt: usize = 128;
const beforeUuid = piecesAt;
const beforeMode = piecesAt + 8;
const ip = piecesAt + 16;
const sentAt = piecesAt + 24;
const beforeName = piecesAt + 32;
const beforeId = piecesAt + 40;
const beforeTime = piecesAt + 48;
/** Four, eight bytes each: for a uuid that was made or sent, and that for each mode. */
const modes = piecesAt + 56;
const noChain = piecesAt + 88;
const beforeProperties = piecesAt + 96;

/** Where writing has come to: for `scanner.ts`. */
const outEndAt: usize = 96;
/** More than a line takes besides the event's own texts, which it holds twice at most. */
const frameBytes: usize = 1024;

let out: usize = 0;

/**
 * Writes lines, one behind the other, as far as there is room, and up to the first event that only the slow road can write.
 *
 * @param ends gets the end of each line.
 * @returns the number of the event that is next.
 */
export function write(
  table: usize,
  from: i32,
  count: i32,
  room: usize,
  roomEnd: usize,
  ends: usize,
  received: f64,
  skew: f64,
  isHistorical: bool,
  isAnonymous: bool,
): i32 {
  out = room;
  let index = from;
  for (; index < count; index++) {
    const item = table + <usize>index * itemBytes;
    const length = load<u32>(item, Item.end) - load<u32>(item, Item.start);
    if (out + 2 * length + frameBytes > roomEnd) break;
    if (!writeLine(item, <i64>received, <i64>skew, isHistorical, isAnonymous)) break;
    store<u32>(ends + (<usize>(index - from) << 2), <u32>out);
  }
  store<u32>(outEndAt, <u32>out);
  return index;
}

function writeLine(item: usize, received: i64, skew: i64, isHistorical: bool, isAnonymous: bool): bool {
  if (load<u32>(item, Item.isOdd) != 0) return false;
  const isPropertyless = load<u32>(item, Item.isPropertyless) != 0;
  if (isPropertyless && load<u32>(item, Item.isProfileEvent) != 0) return false;
  const time = isHistorical ? historicalTime(item, received) : realtime(item, received, skew);
  if (time < 0 || time > microsMax) return false;

  piece(beforeUuid);
  const uuid = load<u32>(item, Item.uuid);
  if (uuid != 0) bytes(uuid, 36);
  else {
    makeUuid(out);
    out += 36;
  }
  piece(beforeName);
  // With their quotes.
  bytes(load<u32>(item, Item.name) - 1, load<u32>(item, Item.nameEnd) - load<u32>(item, Item.name) + 2);
  piece(beforeId);
  bytes(load<u32>(item, Item.id) - 1, load<u32>(item, Item.idEnd) - load<u32>(item, Item.id) + 2);
  piece(beforeTime);
  number(time);
  piece(beforeMode);
  piece(modes + (isPropertyless ? 16 : 0) + (uuid == 0 ? 0 : 8));
  const chain = load<u32>(item, Item.chain);
  if (chain == 0) piece(noChain);
  else bytes(chain, load<u32>(item, Item.chainEnd) - chain);
  piece(beforeProperties);
  properties(item, isPropertyless, isAnonymous);
  byte(closeBrace);
  return true;
}

function historicalTime(item: usize, received: i64): i64 {
  const time = claimedTime(item);
  return time > received + historicalFutureMicros ? -1 : time;
}

function realtime(item: usize, received: i64, skew: i64): i64 {
  let time = received;
  if (load<u32>(item, Item.offset) != 0) {
    time -= integer(load<u32>(item, Item.offset), load<u32>(item, Item.offsetEnd)) * 1000;
  } else if (load<u32>(item, Item.timestamp) != 0) {
    time = claimedTime(item);
    if (time < 0) return -1;
    time -= skew;
  }
  return time > received + futureMicrosMax ? -1 : time;
}

/** -1 without a timestamp, for one that is none, and for one that is not usual. */
function claimedTime(item: usize): i64 {
  const at = load<u32>(item, Item.timestamp);
  if (at == 0) return -1;
  const length = load<u32>(item, Item.timestampEnd) - at;
  if (length == 24) {
    const micros = usualTime(at);
    if (micros >= 0) return micros;
  }
  const micros = timeOf(at, length);
  return micros >= 0 && micros <= <f64>microsMax ? <i64>micros : -1;
}

/** `2026-11-21T02:31:07.123Z`; -1 for any other time. */
function usualTime(at: usize): i64 {
  const isUsual =
    load<u8>(at, 4) == 45 &&
    load<u8>(at, 7) == 45 &&
    load<u8>(at, 10) == 84 &&
    load<u8>(at, 13) == 58 &&
    load<u8>(at, 16) == 58 &&
    load<u8>(at, 19) == 46 &&
    load<u8>(at, 23) == 90;
  if (!isUsual) return -1;
  const year = digits(at, 4);
  const month = digits(at + 5, 2);
  const day = digits(at + 8, 2);
  const hour = digits(at + 11, 2);
  const minute = digits(at + 14, 2);
  const second = digits(at + 17, 2);
  const millis = digits(at + 20, 3);
  // The last days of a month, and odd seconds, are somebody else's.
  if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 28) return -1;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || millis < 0) return -1;
  // Days since 1970 of a year that begins in March, so that the leap day is its last.
  const shifted = month > 2 ? month - 3 : month + 9;
  const from = month > 2 ? year : year - 1;
  const days = from * 365 + from / 4 - from / 100 + from / 400 + (shifted * 153 + 2) / 5 + day - 1 - 719_468;
  const seconds = (hour * 60 + minute) * 60 + second;
  return <i64>days * dayMicros + (<i64>seconds * 1000 + millis) * 1000;
}

/** -1 or less when one is none. */
function digits(at: usize, count: i32): i32 {
  let value = 0;
  for (let index = 0; index < count; index++) {
    const digit = <i32>load<u8>(at + index) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

function integer(at: usize, end: usize): i64 {
  const isNegative = load<u8>(at) == 45;
  if (isNegative) at++;
  let value: i64 = 0;
  for (; at < end; at++) value = value * 10 + (load<u8>(at) - 48);
  return isNegative ? -value : value;
}

function properties(item: usize, isPropertyless: bool, isAnonymous: bool): void {
  const start = load<u32>(item, Item.properties);
  if (start == 0) {
    byte(openBrace);
    more(item, isAnonymous, true);
    byte(closeBrace);
    return;
  }
  const begin = out;
  const end = load<u32>(item, Item.propertiesEnd);
  const cuts = load<u32>(item, Item.cuts);
  let from = start;
  let done: u32 = 0;
  for (let index: u32 = 0; index < cuts; index++) {
    const cut = item + Item.firstCut + <usize>index * cutBytes;
    if (!isCut(load<u32>(cut, Cut.name), isPropertyless, isAnonymous)) continue;
    // With the comma before it, or the one behind it when nothing is kept before it.
    const isFirst = load<u32>(cut, Cut.index) == done;
    const behind = load<u32>(cut, Cut.behind);
    bytes(from, (isFirst ? load<u32>(cut, Cut.start) : load<u32>(cut, Cut.before)) - from);
    from = isFirst && behind != 0 ? behind + 1 : load<u32>(cut, Cut.end);
    done++;
  }
  const isEmpty = load<u32>(item, Item.members) == done;
  bytes(from, end - 1 - from);
  if (more(item, isAnonymous, isEmpty) && isEmpty) {
    // Without the white space of what was cut.
    out = begin;
    byte(openBrace);
    more(item, isAnonymous, true);
  }
  byte(closeBrace);
}

function isCut(name: i32, isPropertyless: bool, isAnonymous: bool): bool {
  switch (name) {
    case names.ip:
      return isAnonymous;
    case names.elementsChain:
      return true;
    case names.processPersonProfile:
      return !isPropertyless;
    default:
      return isPropertyless;
  }
}

/** What the request adds. @returns whether there is anything. */
function more(item: usize, isAnonymous: bool, isFirst: bool): bool {
  const begin = out;
  if (!isAnonymous && load<u32>(item, Item.hasIp) == 0 && load<u32>(ip, 4) != 0) {
    if (!isFirst) byte(comma);
    piece(ip);
    isFirst = false;
  }
  if (load<u32>(item, Item.hasSentAt) == 0 && load<u32>(sentAt, 4) != 0) {
    if (!isFirst) byte(comma);
    piece(sentAt);
  }
  return out != begin;
}

function byte(code: u8): void {
  store<u8>(out, code);
  out++;
}

function piece(at: usize): void {
  bytes(load<u32>(at), load<u32>(at, 4));
}

/** Copies sixteen at a time, and so a few too many. */
function bytes(from: usize, length: usize): void {
  let to = out;
  out += length;
  for (; to < out; to += 16) {
    v128.store(to, v128.load(from));
    from += 16;
  }
}

function number(value: i64): void {
  let count = 1;
  for (let power: i64 = 10; value >= power; power *= 10) count++;
  out += count;
  let at = out;
  do {
    const next = value / 10;
    at--;
    store<u8>(at, <u8>(48 + (value - next * 10)));
    value = next;
  } while (value != 0);
}
