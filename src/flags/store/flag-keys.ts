/**
 * Keys of flags: unique in a project; a deleted flag loses its key when another flag needs it.
 *
 * Source: contract, management-api 5.2 and README (creating over and restoring deleted flags).
 */

import { and, eq } from "drizzle-orm";
import type { MetadataTx } from "../../accounts/db.ts";
import { flag } from "../../accounts/schema.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { checkKeyCharacters, keyFromName, keyOfReplaced, keyOfRestored, unusedKey } from "../rules/key.ts";

/** Checks a new key of a flag. @throws {InvalidFieldError} `unique` @throws {InvalidFlagError} */
export function checkKey(t: MetadataTx, projectId: number, key: string, ownId: number | undefined): void {
  const holder = getHolder(t, projectId, key);
  if (holder && !holder.deleted && holder.id !== ownId) {
    throw new InvalidFieldError("key", "unique", "There is already a feature flag with this key.");
  }
  checkKeyCharacters(key);
}

/** Renames a deleted flag with this key, if any. */
export function freeKey(t: MetadataTx, projectId: number, key: string, ownId?: number): void {
  const holder = getHolder(t, projectId, key);
  if (!holder?.deleted || holder.id === ownId) return;
  t.update(flag)
    .set({ key: keyOfReplaced(key, holder.id) })
    .where(eq(flag.id, holder.id))
    .run();
}

/**
 * The key of a flag after a write; frees it when a deleted flag had it.
 *
 * A restored flag gets its old key back; `-2`, `-3`, ... is appended when another flag has it now.
 */
export function keyAfter(t: MetadataTx, before: Flag, fields: Partial<FlagFields>): string {
  const { projectId, id } = before;
  if (fields.key !== undefined && fields.key !== before.key) {
    checkKey(t, projectId, fields.key, id);
    freeKey(t, projectId, fields.key, id);
    return fields.key;
  }
  const isRestored = before.deleted && fields.deleted === false;
  if (!isRestored) return before.key;
  const key = keyOfRestored(before.key, id, (wanted) => {
    const holder = getHolder(t, projectId, wanted);
    return holder !== undefined && !holder.deleted && holder.id !== id;
  });
  freeKey(t, projectId, key, id);
  return key;
}

function getHolder(t: MetadataTx, projectId: number, key: string) {
  return t
    .select({ id: flag.id, deleted: flag.deleted })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.key, key)))
    .get();
}

/** A key for a flag that is created for an object with a name: with `-2`, `-3`, … when another flag has it. */
export function unusedKeyFor(t: MetadataTx, projectId: number, name: string): string {
  return unusedKey(keyFromName(name), (key) => getHolder(t, projectId, key)?.deleted === false);
}
