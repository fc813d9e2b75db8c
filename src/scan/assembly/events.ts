/** Finds the events of a request and the members of each that ingestion needs, AssemblyScript. */

import { closeBrace, closeBracket, comma, letterF, letterN, letterT, openBrace, openBracket } from "./codes";
import { Has, isPlainString, isUuid, isVisible, Item, itemBytes, recordId } from "./item";
import {
  startItem,
  startObject,
  startString,
  endOfName,
  endOfValue,
  hashOf,
  hasLineBreak,
  isEqual,
  isUnstorable,
  nameHash,
  nameLength,
  skipSpace,
} from "./json";
import * as names from "./names";
import { endOfProperties, forgetOwnToken, ownToken, ownTokenEnd } from "./properties";

/** Facts about the whole request, read by `scanner.ts`. */
const bodyAt: usize = 64;
const bodyItems: usize = bodyAt;
const bodyToken: usize = bodyAt + 4;
const bodyTokenEnd: usize = bodyAt + 8;
const bodySentAt: usize = bodyAt + 12;
const bodySentAtEnd: usize = bodyAt + 16;
const bodyIsHistorical: usize = bodyAt + 20;

/** The members around a batch are recorded like an event's. */
const rootAt: usize = 512;

let tableAt: usize = 0;
let itemsMax: i32 = 0;
let items: i32 = 0;
/** The project key of the first event that has one. */
let itemToken: usize = 0;
let itemTokenEnd: usize = 0;
let doTokensDiffer: bool = false;

/**
 * Reads a request.
 *
 * @param text  its UTF-8 bytes, followed by 16 zero bytes.
 * @param table receives the events.
 * @returns the number of events; 0 if the request needs the slow path.
 */
export function read(text: usize, length: i32, table: usize, countMax: i32): i32 {
  tableAt = table;
  itemsMax = countMax;
  items = 0;
  itemToken = 0;
  itemTokenEnd = 0;
  doTokensDiffer = false;
  memory.fill(bodyAt, 0, 24);
  startString();
  const at = skipSpace(text);
  const code = load<u8>(at);
  let end: usize = 0;
  if (code == openBracket) end = endOfItems(at);
  else if (code == openBrace) end = endOfItem(at, rootAt, true);
  if (end == 0 || skipSpace(end) != text + length) return 0;
  if (load<u32>(bodyToken) == 0) {
    if (doTokensDiffer) return 0;
    store<u32>(bodyToken, <u32>itemToken);
    store<u32>(bodyTokenEnd, <u32>itemTokenEnd);
  }
  store<i32>(bodyItems, items);
  return items;
}

/** The events of an array; an empty array needs the slow path. */
function endOfItems(at: usize): usize {
  at = skipSpace(at + 1);
  while (true) {
    if (load<u8>(at) != openBrace || items == itemsMax) return 0;
    at = endOfItem(at, tableAt + <usize>items * itemBytes, false);
    if (at == 0) return 0;
    items++;
    at = skipSpace(at);
    const code = load<u8>(at);
    if (code == closeBracket) return at + 1;
    if (code != comma) return 0;
    at = skipSpace(at + 1);
  }
}

/** @param isRoot the item is the whole request: an event, or the object around a batch. */
function endOfItem(at: usize, item: usize, isRoot: bool): usize {
  memory.fill(item, 0, Item.firstCut);
  startItem();
  forgetOwnToken();
  if (startObject() == 0) return 0;
  store<u32>(item, <u32>at, Item.start);
  let seen: u32 = 0;
  let token: usize = 0;
  let tokenEnd: usize = 0;
  let hasBatch = false;
  at = skipSpace(at + 1);
  if (load<u8>(at) == closeBrace) return 0;
  while (true) {
    const nameAt = at + 1;
    at = endOfName(at);
    if (at == 0) return 0;
    const name = names.numberOf(nameAt, nameLength, nameHash);
    if (name != 0) {
      const bit: u32 = 1 << name;
      if ((seen & bit) != 0) return 0;
      seen |= bit;
    }
    const start = at;
    const code = load<u8>(at);
    if (name == names.properties && code == openBrace) {
      at = endOfProperties(at, item);
      if (at == 0) return 0;
    } else if (isRoot && name == names.batch) {
      if (code != openBracket) return 0;
      at = endOfItems(at);
      if (at == 0) return 0;
      hasBatch = true;
    } else {
      at = endOfValue(at, 3);
      if (at == 0) return 0;
      if (name == names.token || name == names.apiKey || name == names.dollarToken) {
        if (token != 0 || !isPlainString(start, at)) return 0;
        // Next to a batch, it is not a project key.
        if (isRoot && name == names.dollarToken) return 0;
        token = start + 1;
        tokenEnd = at - 1;
      } else if (isRoot && name == names.sentAt) {
        if (!isPlainString(start, at)) return 0;
        store<u32>(bodySentAt, <u32>(start + 1));
        store<u32>(bodySentAtEnd, <u32>(at - 1));
      } else if (name == names.historicalMigration) {
        // For a list of single events, the slow path compares the keys.
        if (!isRoot) return 0;
        if (code != letterT && code != letterF) return 0;
        store<u32>(bodyIsHistorical, code == letterT ? 1 : 0);
      } else if (name == names.properties) {
        if (code != letterN) return 0;
        store<u32>(item, 1, Item.slowPathAt);
      } else if (name != 0) recordMember(item, name, start, at);
    }
    at = skipSpace(at);
    const next = load<u8>(at);
    if (next == closeBrace) break;
    if (next != comma) return 0;
    at = skipSpace(at + 1);
  }
  at++;
  if (hasBatch) {
    store<u32>(bodyToken, <u32>token);
    store<u32>(bodyTokenEnd, <u32>tokenEnd);
    return at;
  }
  store<u32>(item, <u32>at, Item.end);
  if (isRoot && load<u32>(item, Item.name) == 0) return 0;
  const needsSlowPath = load<u32>(item, Item.name) == 0 || load<u32>(item, Item.id) == 0 || hasLineBreak || isUnstorable;
  if (needsSlowPath || lacksData(item)) store<u32>(item, 1, Item.slowPathAt);
  if (token == 0) {
    token = ownToken;
    tokenEnd = ownTokenEnd;
  }
  if (token != 0) recordToken(token, tokenEnd);
  if (isRoot) {
    memory.copy(tableAt, item, itemBytes);
    items = 1;
  }
  return at;
}

/** Whether `normalize.ts` has a warning for the event. */
function lacksData(item: usize): bool {
  const has = load<u32>(item, Item.has);
  if ((load<u32>(item, Item.needs) & ~has) != 0) return true;
  const hasOwnTime = load<u32>(item, Item.timestamp) != 0 || load<u32>(item, Item.offset) != 0;
  return (has & Has.timeInside) != 0 && !hasOwnTime;
}

function recordToken(token: usize, end: usize): void {
  if (itemToken == 0) {
    itemToken = token;
    itemTokenEnd = end;
  } else if (end - token != itemTokenEnd - itemToken || !isEqual(token, itemToken, <u32>(end - token))) {
    doTokensDiffer = true;
  }
}

function recordMember(item: usize, name: i32, start: usize, end: usize): void {
  const isPlain = isPlainString(start, end);
  switch (name) {
    case names.event: {
      if (!isPlain || !isVisible(start + 1, end - 1)) break;
      store<u32>(item, <u32>(start + 1), Item.name);
      store<u32>(item, <u32>(end - 1), Item.nameEnd);
      const length = <u32>(end - start - 2);
      // Events such as `survey sent`.
      if (length > 7 && load<u32>(start, 1) == 0x76727573) break;
      const kind = names.numberOf(start + 1, length, hashOf(start + 1, length));
      if (kind == names.slowPathEvent) break;
      // One member name is also the name of an event.
      const isProfileEvent = kind == names.profileEvent || kind == names.set || kind == names.aliasEvent;
      if (isProfileEvent) store<u32>(item, 1, Item.isProfileEvent);
      if (kind == names.set) store<u32>(item, Has.change, Item.needs);
      else if (kind == names.aliasEvent) store<u32>(item, Has.alias, Item.needs);
      else if (kind == names.screenEvent) store<u32>(item, Has.screenName, Item.needs);
      return;
    }
    case names.distinctId:
      if (!isPlain || !isVisible(start + 1, end - 1)) break;
      recordId(item, start, end);
      return;
    case names.uuid:
      if (!isPlain || end - start != 38 || !isUuid(start + 1)) break;
      store<u32>(item, <u32>(start + 1), Item.uuid);
      return;
    case names.timestamp:
      if (!isPlain) break;
      store<u32>(item, <u32>(start + 1), Item.timestamp);
      store<u32>(item, <u32>(end - 1), Item.timestampEnd);
      return;
    case names.offset:
      if (!isShortInteger(start, end)) break;
      store<u32>(item, <u32>start, Item.offset);
      store<u32>(item, <u32>end, Item.offsetEnd);
      return;
    case names.dollarDistinctId:
    case names.set:
    case names.setOnce:
      break;
    default:
      return;
  }
  store<u32>(item, 1, Item.slowPathAt);
}

function isShortInteger(start: usize, end: usize): bool {
  if (end - start > 12) return false;
  if (load<u8>(start) == 45) start++;
  for (; start < end; start++) {
    const code = load<u8>(start);
    if (code < 48 || code > 57) return false;
  }
  return true;
}
