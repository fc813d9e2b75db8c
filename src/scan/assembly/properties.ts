/** Finds the properties of an event that affect its journal line, AssemblyScript. */

import { closeBrace, comma, letterF, letterT, openBrace, openBracket, quote } from "./codes";
import { Cut, cutBytes, Has, isPlainString, isVisible, Item, recordHas, recordId } from "./item";
import { startObject, endOfNewName, endOfValue, escapes, nameHash, nameLength, skipSpace } from "./json";
import * as names from "./names";

/** The project key among the current event's properties. */
export let ownToken: usize = 0;
export let ownTokenEnd: usize = 0;

/** Prepares for a new event. */
export function forgetOwnToken(): void {
  ownToken = 0;
}

/** @returns the position after the properties; 0 if the request needs the slow path. */
export function endOfProperties(at: usize, item: usize): usize {
  const object = startObject();
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
        if (!recordProperty(item, name, start, at)) return 0;
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
        // `$group_0` to `$group_4`.
        store<u32>(item, 1, Item.slowPathAt);
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

/** @returns false if the request needs the slow path. */
function recordProperty(item: usize, name: i32, start: usize, end: usize): bool {
  const code = load<u8>(start);
  switch (name) {
    case names.distinctId:
      // The member next to the properties takes precedence, wherever it occurs.
      if (load<u32>(item, Item.id) != 0) return true;
      if (!isPlainString(start, end) || !isVisible(start + 1, end - 1)) break;
      recordId(item, start, end);
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
      // Capitals and escapes may need normalization.
      if (escapes != 0 || hasCapital(start, end)) break;
      return true;
    case names.processPersonProfile:
      if (code == letterF) store<u32>(item, 1, Item.isPropertyless);
      else if (code != letterT) break;
      return true;
    case names.alias:
      if (isPlainString(start, end) && isVisible(start + 1, end - 1)) recordHas(item, Has.alias);
      return true;
    case names.screenName:
      if (isPlainString(start, end) && isVisible(start + 1, end - 1)) recordHas(item, Has.screenName);
      return true;
    case names.timestamp:
      recordHas(item, Has.timeInside);
      return true;
    case names.unset:
    case names.set:
    case names.setOnce:
      if (code != openBrace && !(code == openBracket && name == names.unset)) break;
      recordHas(item, Has.change);
      return true;
    case names.groups:
      if (code != openBrace) break;
      return true;
    case names.captureInternal:
    case names.elements:
    case names.ignoreSentAt:
    case names.dollarDistinctId:
      break;
    default:
      return true;
  }
  store<u32>(item, 1, Item.slowPathAt);
  return true;
}

function hasCapital(start: usize, end: usize): bool {
  for (; start < end; start++) {
    const code = load<u8>(start);
    if (code >= 65 && code <= 90) return true;
  }
  return false;
}
