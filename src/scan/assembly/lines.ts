/**
 * Writes the journal lines of the events that `events.ts` found, AssemblyScript: the same bytes as `EntryWriter`,
 * with properties edited as in `event-properties.ts`.
 */

import { closeBrace, comma, openBrace } from "./codes";
import { Cut, cutBytes, Item, itemBytes } from "./item";
import * as names from "./names";
import { byte, bytes, number, out, copyPart, writeAt } from "./output";
import { instantOf, microsMax } from "./time";

/** Writes a new UUID to an address. */
@external("host", "generateUuid")
declare function generateUuid(at: usize): void;

const hourMicros: i64 = 3_600_000_000;
/** As in `event-time.ts`. */
const futureMicrosMax: i64 = 23 * hourMicros;
const historicalFutureMicros: i64 = hourMicros;

/** Parts of lines that do not come from events, as position and length, in the order of `scanner.ts`. */
const partsAt: usize = 128;
const beforeUuid = partsAt;
const beforeMode = partsAt + 8;
const ip = partsAt + 16;
const sentAt = partsAt + 24;
const beforeName = partsAt + 32;
const beforeId = partsAt + 40;
const beforeTime = partsAt + 48;
/** Four modes, eight bytes each: generated and sent UUID, each with and without a person profile. */
const modes = partsAt + 56;
const noChain = partsAt + 88;
const beforeProperties = partsAt + 96;

/** Address of the end of the output, for `scanner.ts`. */
const outEndAt: usize = 96;
/** Upper limit of a line without the event's strings, which it contains at most twice. */
const frameBytes: usize = 1024;

/**
 * Writes consecutive lines until the output is full or an event needs the slow path.
 *
 * @param ends receives the end of each line.
 * @returns the index of the next event.
 */
export function write(
  table: usize,
  from: i32,
  count: i32,
  output: usize,
  outputEnd: usize,
  ends: usize,
  received: f64,
  skew: f64,
  isHistorical: bool,
  isAnonymous: bool,
): i32 {
  writeAt(output);
  let index = from;
  for (; index < count; index++) {
    const item = table + <usize>index * itemBytes;
    const length = load<u32>(item, Item.end) - load<u32>(item, Item.start);
    if (out + 2 * length + frameBytes > outputEnd) break;
    if (!writeLine(item, <i64>received, <i64>skew, isHistorical, isAnonymous)) break;
    store<u32>(ends + (<usize>(index - from) << 2), <u32>out);
  }
  store<u32>(outEndAt, <u32>out);
  return index;
}

function writeLine(item: usize, received: i64, skew: i64, isHistorical: bool, isAnonymous: bool): bool {
  if (load<u32>(item, Item.slowPathAt) != 0) return false;
  const isPropertyless = load<u32>(item, Item.isPropertyless) != 0;
  if (isPropertyless && load<u32>(item, Item.isProfileEvent) != 0) return false;
  const time = isHistorical ? historicalTime(item, received) : realtime(item, received, skew);
  if (time < 0 || time > microsMax) return false;

  copyPart(beforeUuid);
  const uuid = load<u32>(item, Item.uuid);
  if (uuid != 0) bytes(uuid, 36);
  else {
    generateUuid(out);
    writeAt(out + 36);
  }
  copyPart(beforeName);
  // Including the quotes.
  bytes(load<u32>(item, Item.name) - 1, load<u32>(item, Item.nameEnd) - load<u32>(item, Item.name) + 2);
  copyPart(beforeId);
  bytes(load<u32>(item, Item.id) - 1, load<u32>(item, Item.idEnd) - load<u32>(item, Item.id) + 2);
  copyPart(beforeTime);
  number(time);
  copyPart(beforeMode);
  copyPart(modes + (isPropertyless ? 16 : 0) + (uuid == 0 ? 0 : 8));
  const chain = load<u32>(item, Item.chain);
  if (chain == 0) copyPart(noChain);
  else bytes(chain, load<u32>(item, Item.chainEnd) - chain);
  copyPart(beforeProperties);
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

/** -1 without a timestamp, or for one that this reader does not parse. */
function claimedTime(item: usize): i64 {
  const at = load<u32>(item, Item.timestamp);
  return at == 0 ? -1 : instantOf(at, load<u32>(item, Item.timestampEnd) - at);
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
    // With the comma before it, or the comma after it if no member remains before it.
    const isFirst = load<u32>(cut, Cut.index) == done;
    const behind = load<u32>(cut, Cut.behind);
    bytes(from, (isFirst ? load<u32>(cut, Cut.start) : load<u32>(cut, Cut.before)) - from);
    from = isFirst && behind != 0 ? behind + 1 : load<u32>(cut, Cut.end);
    done++;
  }
  const isEmpty = load<u32>(item, Item.members) == done;
  bytes(from, end - 1 - from);
  if (more(item, isAnonymous, isEmpty) && isEmpty) {
    // Removes the white space that surrounded the removed members.
    writeAt(begin);
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

/** Writes the properties that the request adds. @returns whether it adds any. */
function more(item: usize, isAnonymous: bool, isFirst: bool): bool {
  const begin = out;
  if (!isAnonymous && load<u32>(item, Item.hasIp) == 0 && load<u32>(ip, 4) != 0) {
    if (!isFirst) byte(comma);
    copyPart(ip);
    isFirst = false;
  }
  if (load<u32>(item, Item.hasSentAt) == 0 && load<u32>(sentAt, 4) != 0) {
    if (!isFirst) byte(comma);
    copyPart(sentAt);
  }
  return out != begin;
}
