/** Names with a meaning in a request, AssemblyScript: each has a number and is found by its hash. */

import { addName, findName, tableBytes } from "./name-table";
import { writeText } from "./output";

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
/** Events that need the slow path. */
export const slowPathEvent = 25;
/** Events that need the slow path unless they are anonymous. */
export const profileEvent = 26;
export const alias = 27;
export const screenName = 28;
export const groups = 29;
/** Events that require a property; those that require an alias are also profile events. */
export const screenEvent = 30;
export const aliasEvent = 31;

const table: usize = 1024;
/** The texts of the names. */
let textEnd: usize = table + tableBytes;

function know(name: string, number: i32): void {
  const length = writeText(textEnd, name);
  addName(table, textEnd, length, number);
  // At least eight bytes are read, also of shorter names.
  textEnd += max<u32>(length, 8);
}

/** The number of a name; 0 for a name without a meaning. */
export function numberOf(at: usize, length: u32, hash: u32): i32 {
  return <i32>findName(table, at, length, hash);
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
know("$snapshot", slowPathEvent);
know("$$client_ingestion_warning", slowPathEvent);
know("$groupidentify", slowPathEvent);
know("$group_identify", slowPathEvent);
know("$identify", profileEvent);
know("alias", alias);
know("$screen_name", screenName);
know("$groups", groups);
know("$screen", screenEvent);
know("$create_alias", aliasEvent);
know("$merge_dangerously", aliasEvent);
