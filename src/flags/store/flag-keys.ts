/**
 * Keys of flags: unique in a project; a deleted flag gives its key up when somebody else wants it.
 *
 * Source: contract, management-api 5.2 and README (creating over and restoring deleted flags).
 */

import { and, eq } from "drizzle-orm";
import type { MetadataTx } from "../../accounts/db.ts";
import { flag } from "../../accounts/schema.ts";
import { InvalidField } from "../../lib/errors.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { checkKeyCharacters, keyOfReplaced, keyOfRestored } from "../rules/key.ts";

/** Checks a key that a flag is to have from now on. @throws {InvalidField} `unique` @throws {FlagInvalid} */
export function checkKey(t: MetadataTx, projectId: number, key: string, ownId: number | undefined): void {
  const holder = holderOf(t, projectId, key);
  if (holder && !holder.deleted && holder.id !== ownId) {
    throw new InvalidField("key", "unique", "There is already a feature flag with this key.");
  }
  checkKeyCharacters(key);
}

/** Renames the deleted flag that holds this key, if there is one. */
export function freeKey(t: MetadataTx, projectId: number, key: string, ownId?: number): void {
  const holder = holderOf(t, projectId, key);
  if (!holder?.deleted || holder.id === ownId) return;
  t.update(flag)
    .set({ key: keyOfReplaced(key, holder.id) })
    .where(eq(flag.id, holder.id))
    .run();
}

/**
 * The key a flag has after a write; frees it when a deleted flag held it.
 *
 * A restored flag gets its old key back; `-2`, `-3`, ... is appended when that is taken meanwhile.
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
    const holder = holderOf(t, projectId, wanted);
    return holder !== undefined && !holder.deleted && holder.id !== id;
  });
  freeKey(t, projectId, key, id);
  return key;
}

function holderOf(t: MetadataTx, projectId: number, key: string) {
  return t
    .select({ id: flag.id, deleted: flag.deleted })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.key, key)))
    .get();
}
