/** The record of an event while it is read, and checks of its parts, AssemblyScript. */

import { quote } from "./codes";
import { escapes } from "./json";

/** One event, 256 bytes. Positions of texts without their quotes; 0 if absent. */
export const itemBytes: usize = 256;
export namespace Item {
  export const start: usize = 0;
  export const end: usize = 4;
  /** The event needs the slow path. */
  export const slowPathAt: usize = 8;
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
  /** Which properties exist and which the event's name requires: bits of `Has`. */
  export const has: usize = 84;
  export const needs: usize = 88;
  export const cuts: usize = 92;
  export const firstCut: usize = 96;
}

/** Data whose absence causes a warning of `normalize.ts`. */
export namespace Has {
  export const alias: u32 = 1;
  export const screenName: u32 = 2;
  /** `$set`, `$set_once` or `$unset`. */
  export const change: u32 = 4;
  /** A `timestamp` among the properties. */
  export const timeInside: u32 = 8;
}

export function recordHas(item: usize, bit: u32): void {
  store<u32>(item, load<u32>(item, Item.has) | bit, Item.has);
}

/** A member of the properties that may have to be removed, 24 bytes; an event has at most six. */
export const cutBytes: usize = 24;
export namespace Cut {
  export const name: usize = 0;
  /** Number of members before it. */
  export const index: usize = 4;
  export const start: usize = 8;
  export const end: usize = 12;
  /** Positions of the comma before it and of the comma after it. */
  export const before: usize = 16;
  export const behind: usize = 20;
}

export function recordId(item: usize, start: usize, end: usize): void {
  store<u32>(item, <u32>(start + 1), Item.id);
  store<u32>(item, <u32>(end - 1), Item.idEnd);
}

/** Whether a value is a non-empty string without escapes. */
export function isPlainString(start: usize, end: usize): bool {
  return load<u8>(start) == quote && escapes == 0 && end - start > 2;
}

/** Whether a string has a character other than white space. A fast check: false needs the slow path. */
export function isVisible(start: usize, end: usize): bool {
  for (; start < end; start++) {
    const code = load<u8>(start);
    if (code > 32 && code < 127) return true;
  }
  return false;
}

/** Lower case, with hyphens. */
export function isUuid(at: usize): bool {
  for (let index = 0; index < 36; index++) {
    const code = load<u8>(at + index);
    if (index == 8 || index == 13 || index == 18 || index == 23) {
      if (code != 45) return false;
    } else if (!((code >= 48 && code <= 57) || (code >= 97 && code <= 102))) return false;
  }
  return true;
}
