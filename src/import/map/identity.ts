/** Which IDs of a record identify a person, and which pair of them may be linked. Pure. */

import type { JsonObject } from "../../lib/json/value.ts";
import { isIllegalForMerge, unquoted } from "../../persons/identity/distinct-ids.ts";

/**
 * In addition to those that never merge (contract, ingestion 13.2): database NULLs, and IDs that SDKs send for unknown
 * users.
 */
const placeholders: ReadonlySet<string> = new Set([
  "nil",
  "(null)",
  "<null>",
  "\\n",
  "n/a",
  "na",
  "-1",
  "unknown",
  "[object object]",
  "nan",
]);
/** Includes the nil UUID. */
const zerosForm = /^[0-]+$/;

/** No placeholder that begins with a letter is longer. */
const wordLengthMax = "not_authenticated".length;
const wordStart = /^[a-z]/i;

/** Whether an ID is shared by all users: it identifies neither a device nor a user. Source: contract, import 1.1 I7. */
export function isPlaceholder(id: string): boolean {
  // Most IDs are not words.
  if (id.length > wordLengthMax && wordStart.test(id) && !id.endsWith(" ")) return false;
  const word = unquoted(id.trim()).trim().toLowerCase();
  return isIllegalForMerge(word) || placeholders.has(word) || zerosForm.test(word);
}

export interface RecordIdentity {
  distinctId: string | undefined;
  /** The device and the user, when the record names both: the gate decides whether they are linked. */
  pair?: readonly [device: string, user: string];
  /** Whether an ID was a placeholder. */
  hasPlaceholder?: true;
}

/**
 * The identity of a record that may name a device and a user.
 *
 * @param others IDs that are used when both are missing or placeholders, best first.
 */
export function getIdentity(
  device: string | undefined,
  user: string | undefined,
  ...others: (string | undefined)[]
): RecordIdentity {
  return identityAmong([user, device, ...others], device, user);
}

/** Like `getIdentity` with the source's own order. @param ids of the record, best first */
export function identityAmong(
  ids: readonly (string | undefined)[],
  device: string | undefined,
  user: string | undefined,
): RecordIdentity {
  const named = ids.filter((id) => id !== undefined);
  const real = named.filter((id) => !isPlaceholder(id));
  const [realDevice, realUser] = [device, user].map((id) =>
    id === undefined || isPlaceholder(id) ? undefined : id,
  );
  const isPair = realDevice !== undefined && realUser !== undefined && realDevice !== realUser;
  return {
    // An event whose only ID is a placeholder keeps it, so that the event is not lost.
    distinctId: real[0] ?? named[0],
    ...(isPair ? { pair: [realDevice, realUser] } : {}),
    ...(real.length < named.length ? { hasPlaceholder: true } : {}),
  };
}

/** What a command that joins two IDs becomes. */
export interface Joining {
  distinctId: string | undefined;
  /** `alias`, which joins; a placeholder is not joined: it is kept under a name without effect. */
  properties: JsonObject;
  hasPlaceholder?: true;
}

/**
 * A command that joins an ID into the person of another one, unless one of them is a placeholder. Source: contract,
 * import 1.1 I6, I7.
 */
export function joinIds(target: string | undefined, other: string | undefined): Joining {
  const [isTargetReal, isOtherReal] = [target, other].map((id) => id === undefined || !isPlaceholder(id));
  if (isTargetReal && isOtherReal)
    return { distinctId: target, properties: other === undefined ? {} : { alias: other } };
  const [distinctId, placeholder] = isTargetReal || other === undefined ? [target, other] : [other, target];
  return { distinctId, properties: { placeholder_id: placeholder ?? null }, hasPlaceholder: true };
}
