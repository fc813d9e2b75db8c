/** The names that mean something in a request, AssemblyScript: each has a number, and is found by its hash. */

import { hashOf, isEqual } from "./json";

export const event = 1;
export const distinctId = 2;
export const dollarDistinctId = 3;
export const uuid = 4;
export const timestamp = 5;
export const offset = 6;
export const properties = 7;
export const set = 8;
export const setOnce = 9;
export const unset = 10;
export const token = 11;
export const apiKey = 12;
export const dollarToken = 13;
export const batch = 14;
export const sentAt = 15;
export const historicalMigration = 16;
export const ip = 17;
export const captureInternal = 18;
export const dollarSentAt = 19;
export const elements = 20;
export const elementsChain = 21;
export const sessionId = 22;
export const processPersonProfile = 23;
export const ignoreSentAt = 24;
/** Names of events that are not simply stored. */
export const unusualEvent = 25;
/** The same, when the event leaves persons alone. */
export const profileEvent = 26;

/** Eight bytes for each slot: place and length of the name, and its number. */
const slotsAt: usize = 1024;
const slots: u32 = 256;
/** The names themselves. */
const textAt: usize = 3072;

let textEnd: usize = textAt;

function know(name: string, number: i32): void {
  const at = textEnd;
  const length = <u32>name.length;
  for (let index: u32 = 0; index < length; index++) store<u8>(at + index, <u8>name.charCodeAt(index));
  // Eight bytes are read of short ones, too.
  textEnd = at + max<u32>(length, 8);
  let slot = hashOf(at, length) & (slots - 1);
  while (load<u16>(slotsAt + (slot << 3), 6) != 0) slot = (slot + 1) & (slots - 1);
  const place = slotsAt + (slot << 3);
  store<u32>(place, <u32>at);
  store<u16>(place, <u16>length, 4);
  store<u16>(place, <u16>number, 6);
}

/** The number of a name; 0 for one that means nothing. */
export function numberOf(at: usize, length: u32, hash: u32): i32 {
  let slot = hash & (slots - 1);
  while (true) {
    const place = slotsAt + (slot << 3);
    const number = <i32>load<u16>(place, 6);
    if (number == 0) return 0;
    if (load<u16>(place, 4) == length && isEqual(load<u32>(place), at, length)) return number;
    slot = (slot + 1) & (slots - 1);
  }
}

know("event", event);
know("distinct_id", distinctId);
know("$distinct_id", dollarDistinctId);
know("uuid", uuid);
know("timestamp", timestamp);
know("offset", offset);
know("properties", properties);
know("$set", set);
know("$set_once", setOnce);
know("$unset", unset);
know("token", token);
know("api_key", apiKey);
know("$token", dollarToken);
know("batch", batch);
know("sent_at", sentAt);
know("historical_migration", historicalMigration);
know("$ip", ip);
know("capture_internal", captureInternal);
know("$sent_at", dollarSentAt);
know("$elements", elements);
know("$elements_chain", elementsChain);
know("$session_id", sessionId);
know("$process_person_profile", processPersonProfile);
know("$ignore_sent_at", ignoreSentAt);
know("$snapshot", unusualEvent);
know("$$client_ingestion_warning", unusualEvent);
know("$groupidentify", unusualEvent);
know("$group_identify", unusualEvent);
know("$identify", profileEvent);
know("$create_alias", profileEvent);
know("$merge_dangerously", profileEvent);
