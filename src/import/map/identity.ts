/** Which ids of a record name a person, and which pair of them may be linked. Pure. */

import { isIllegalForMerge, unquoted } from "../../people/identity/distinct-ids.ts";

/** Beside those that merge nothing (contract, ingestion 13.2): NULL of databases, and what SDKs send for unknown users. */
const placeholders: ReadonlySet<string> = new Set([
  ...["nil", "(null)", "<null>", "\\n", "n/a", "na", "-1", "unknown", "[object object]", "nan"],
]);
/** The uuid of zeros too. */
const zerosForm = /^[0-]+$/;

/** Whether an id is sent for everybody: it names neither a device nor a user. Source: contract, import 1.1 I7. */
export function isPlaceholder(id: string): boolean {
  const word = unquoted(id.trim()).trim().toLowerCase();
  return isIllegalForMerge(word) || placeholders.has(word) || zerosForm.test(word);
}

export interface RecordIdentity {
  distinctId: string | undefined;
  /** The device and the user, when the record names both: the gate decides whether they are linked. */
  pair?: readonly [device: string, user: string];
  /** Whether an id was a placeholder. */
  hasPlaceholder?: true;
}

/**
 * The identity of a record that may name a device and a user.
 *
 * @param others ids that are used when both are missing or placeholders, best first.
 */
export function identityOf(
  device: string | undefined,
  user: string | undefined,
  ...others: (string | undefined)[]
): RecordIdentity {
  return identityAmong([user, device, ...others], device, user);
}

/** The same where the source has an order of its own. @param ids of the record, best first */
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
    // An event whose only id is a placeholder keeps it: it is not lost.
    distinctId: real[0] ?? named[0],
    ...(isPair ? { pair: [realDevice, realUser] } : {}),
    ...(real.length < named.length ? { hasPlaceholder: true } : {}),
  };
}
