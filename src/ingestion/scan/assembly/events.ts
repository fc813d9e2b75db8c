/** Finds the events of a request and the parts of each that mean something, AssemblyScript. */

import {
  beginItem,
  beginObject,
  beginText,
  endOfName,
  endOfNewName,
  endOfString,
  endOfValue,
  escapes,
  hashOf,
  hasLineBreak,
  isEqual,
  isUnstorable,
  nameHash,
  nameLength,
  skipSpace,
} from "./json";
import * as names from "./names";

const quote: u8 = 34;
const comma: u8 = 44;
const openBracket: u8 = 91;
const closeBracket: u8 = 93;
const letterF: u8 = 102;
const letterN: u8 = 110;
const letterT: u8 = 116;
const openBrace: u8 = 123;
const closeBrace: u8 = 125;

/** What was found out about the whole request: read by `scanner.ts`. */
const bodyAt: usize = 64;
const bodyItems: usize = bodyAt;
const bodyToken: usize = bodyAt + 4;
const bodyTokenEnd: usize = bodyAt + 8;
const bodySentAt: usize = bodyAt + 12;
const bodySentAtEnd: usize = bodyAt + 16;
const bodyIsHistorical: usize = bodyAt + 20;

/** What is around the events of a batch is noted as an event as well. */
const rootAt: usize = 512;

/** One event, 256 bytes. Places of texts; 0 for what there is none of. Strings are without their quotes. */
export const itemBytes: usize = 256;
export namespace Item {
  export const start: usize = 0;
  export const end: usize = 4;
  /** It has something that only the slow road knows about. */
  export const isOdd: usize = 8;
  export const isPropertyless: usize = 12;
  export const name: usize = 16;
  export const nameEnd: usize = 20;
  export const id: usize = 24;
  export const idEnd: usize = 28;
  export const uuid: usize = 32;
  export const timestamp: usize = 36;
  export const timestampEnd: usize = 40;
  export const offset: usize = 44;
  export const offsetEnd: usize = 48;
  export const properties: usize = 52;
  export const propertiesEnd: usize = 56;
  /** Members of the properties. */
  export const members: usize = 60;
  export const chain: usize = 64;
  export const chainEnd: usize = 68;
  export const hasIp: usize = 72;
  export const hasSentAt: usize = 76;
  export const isProfileEvent: usize = 80;
  export const cuts: usize = 84;
  export const firstCut: usize = 88;
}

/** A member of the properties that may have to be cut out, 24 bytes; an event has six at most. */
export const cutBytes: usize = 24;
export namespace Cut {
  export const name: usize = 0;
  /** Members before it. */
  export const index: usize = 4;
  export const start: usize = 8;
  export const end: usize = 12;
  /** Of the comma before it, and of the one behind it. */
  export const before: usize = 16;
  export const behind: usize = 20;
}

let tableAt: usize = 0;
let itemsMax: i32 = 0;
let items: i32 = 0;
/** The key of the first event that has one. */
let itemToken: usize = 0;
let itemTokenEnd: usize = 0;
let doTokensDiffer: bool = false;

/**
 * Reads a request.
 *
 * @param text  its bytes, which are known to be UTF-8, and 16 zeros.
 * @param table where its events are noted.
 * @returns how many there are; 0 when it has to go the slow road.
 */
export function read(text: usize, length: i32, table: usize, countMax: i32): i32 {
  tableAt = table;
  itemsMax = countMax;
  items = 0;
  itemToken = 0;
  itemTokenEnd = 0;
  doTokensDiffer = false;
  memory.fill(bodyAt, 0, 24);
  beginText();
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

/** The events of an array, of which there has to be one. */
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

/** @param isRoot it is the whole request: an event, or what is around a batch of them. */
function endOfItem(at: usize, item: usize, isRoot: bool): usize {
  memory.fill(item, 0, Item.firstCut);
  beginItem();
  ownToken = 0;
  if (beginObject() == 0) return 0;
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
        // Beside a batch, it is no key.
        if (isRoot && name == names.dollarToken) return 0;
        token = start + 1;
        tokenEnd = at - 1;
      } else if (isRoot && name == names.sentAt) {
        if (!isPlainString(start, at)) return 0;
        store<u32>(bodySentAt, <u32>(start + 1));
        store<u32>(bodySentAtEnd, <u32>(at - 1));
      } else if (isRoot && name == names.historicalMigration) {
        if (code != letterT && code != letterF) return 0;
        store<u32>(bodyIsHistorical, code == letterT ? 1 : 0);
      } else if (name == names.properties) {
        if (code != letterN) return 0;
        store<u32>(item, 1, Item.isOdd);
      } else if (name != 0) noteMember(item, name, start, at);
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
  if (isRoot) {
    // Only in a batch it means something.
    store<u32>(bodyIsHistorical, 0);
    if (load<u32>(item, Item.name) == 0) return 0;
  }
  const isOdd = load<u32>(item, Item.name) == 0 || load<u32>(item, Item.id) == 0 || hasLineBreak || isUnstorable;
  if (isOdd) store<u32>(item, 1, Item.isOdd);
  if (token == 0) {
    token = ownToken;
    tokenEnd = ownTokenEnd;
  }
  if (token != 0) noteToken(token, tokenEnd);
  if (isRoot) {
    memory.copy(tableAt, item, itemBytes);
    items = 1;
  }
  return at;
}

/** The key among the properties of the event that is being read. */
let ownToken: usize = 0;
let ownTokenEnd: usize = 0;

function noteToken(token: usize, end: usize): void {
  if (itemToken == 0) {
    itemToken = token;
    itemTokenEnd = end;
  } else if (end - token != itemTokenEnd - itemToken || !isEqual(token, itemToken, <u32>(end - token))) {
    doTokensDiffer = true;
  }
}

/** Whether a value is a string that is not empty and has no escapes. */
function isPlainString(start: usize, end: usize): bool {
  return load<u8>(start) == quote && escapes == 0 && end - start > 2;
}

/** Whether a string has a character besides white space, as far as can be said at once. */
function isVisible(start: usize, end: usize): bool {
  for (; start < end; start++) {
    const code = load<u8>(start);
    if (code > 32 && code < 127) return true;
  }
  return false;
}

function noteMember(item: usize, name: i32, start: usize, end: usize): void {
  const isPlain = isPlainString(start, end);
  switch (name) {
    case names.event: {
      if (!isPlain || !isVisible(start + 1, end - 1)) break;
      store<u32>(item, <u32>(start + 1), Item.name);
      store<u32>(item, <u32>(end - 1), Item.nameEnd);
      const length = <u32>(end - start - 2);
      // `survey sent` and its like.
      if (length > 7 && load<u32>(start, 1) == 0x76727573) break;
      const kind = names.numberOf(start + 1, length, hashOf(start + 1, length));
      if (kind == names.unusualEvent) break;
      if (kind == names.profileEvent) store<u32>(item, 1, Item.isProfileEvent);
      return;
    }
    case names.distinctId:
      if (!isPlain || !isVisible(start + 1, end - 1)) break;
      noteId(item, start, end);
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
  store<u32>(item, 1, Item.isOdd);
}

function noteId(item: usize, start: usize, end: usize): void {
  store<u32>(item, <u32>(start + 1), Item.id);
  store<u32>(item, <u32>(end - 1), Item.idEnd);
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

/** Lower case, with hyphens. */
function isUuid(at: usize): bool {
  for (let index = 0; index < 36; index++) {
    const code = load<u8>(at + index);
    if (index == 8 || index == 13 || index == 18 || index == 23) {
      if (code != 45) return false;
    } else if (!((code >= 48 && code <= 57) || (code >= 97 && code <= 102))) return false;
  }
  return true;
}

function endOfProperties(at: usize, item: usize): usize {
  const object = beginObject();
  if (object == 0) return 0;
  store<u32>(item, <u32>at, Item.properties);
  let members = 0;
  let commaAt: usize = 0;
  let openCut: usize = 0;
  at = skipSpace(at + 1);
  if (load<u8>(at) != closeBrace) {
    while (true) {
      const nameAt = at + 1;
      at = endOfNewName(at, object);
      if (at == 0) return 0;
      const name = names.numberOf(nameAt, nameLength, nameHash);
      const start = at;
      at = endOfValue(at, 4);
      if (at == 0) return 0;
      if (name != 0) {
        if (!noteProperty(item, name, start, at)) return 0;
        if (canBeCut(name)) {
          openCut = item + Item.firstCut + <usize>load<u32>(item, Item.cuts) * cutBytes;
          store<u32>(item, load<u32>(item, Item.cuts) + 1, Item.cuts);
          store<u32>(openCut, name, Cut.name);
          store<u32>(openCut, members, Cut.index);
          store<u32>(openCut, <u32>(nameAt - 1), Cut.start);
          store<u32>(openCut, <u32>at, Cut.end);
          store<u32>(openCut, <u32>commaAt, Cut.before);
          store<u32>(openCut, 0, Cut.behind);
        }
      } else if (load<u64>(nameAt) << 8 == 0x5f70756f7267_2400) {
        // `$group_0` and its like.
        store<u32>(item, 1, Item.isOdd);
      }
      members++;
      at = skipSpace(at);
      const next = load<u8>(at);
      if (next == closeBrace) break;
      if (next != comma) return 0;
      commaAt = at;
      if (openCut != 0) {
        store<u32>(openCut, <u32>at, Cut.behind);
        openCut = 0;
      }
      at = skipSpace(at + 1);
    }
  }
  store<u32>(item, members, Item.members);
  store<u32>(item, <u32>(at + 1), Item.propertiesEnd);
  return at + 1;
}

function canBeCut(name: i32): bool {
  switch (name) {
    case names.ip:
    case names.elementsChain:
    case names.processPersonProfile:
    case names.set:
    case names.setOnce:
    case names.unset:
      return true;
    default:
      return false;
  }
}

/** @returns whether the request can go on. */
function noteProperty(item: usize, name: i32, start: usize, end: usize): bool {
  const code = load<u8>(start);
  switch (name) {
    case names.distinctId:
      // The one beside the properties comes first, wherever it stands.
      if (load<u32>(item, Item.id) != 0) return true;
      if (!isPlainString(start, end) || !isVisible(start + 1, end - 1)) break;
      noteId(item, start, end);
      return true;
    case names.token:
      if (code != quote) return true;
      if (!isPlainString(start, end)) return false;
      ownToken = start + 1;
      ownTokenEnd = end - 1;
      return true;
    case names.ip:
      store<u32>(item, 1, Item.hasIp);
      return true;
    case names.dollarSentAt:
      store<u32>(item, 1, Item.hasSentAt);
      return true;
    case names.elementsChain:
      if (code != quote) break;
      if (end - start == 2) return true;
      if (escapes == 2) break;
      store<u32>(item, <u32>start, Item.chain);
      store<u32>(item, <u32>end, Item.chainEnd);
      return true;
    case names.sessionId:
      if (code != quote) return true;
      // Upper case and escapes may have to be changed.
      if (escapes != 0 || hasCapital(start, end)) break;
      return true;
    case names.processPersonProfile:
      if (code == letterF) store<u32>(item, 1, Item.isPropertyless);
      else if (code != letterT) break;
      return true;
    case names.captureInternal:
    case names.elements:
    case names.ignoreSentAt:
    case names.dollarDistinctId:
      break;
    default:
      return true;
  }
  store<u32>(item, 1, Item.isOdd);
  return true;
}

function hasCapital(start: usize, end: usize): bool {
  for (; start < end; start++) {
    const code = load<u8>(start);
    if (code >= 65 && code <= 90) return true;
  }
  return false;
}
