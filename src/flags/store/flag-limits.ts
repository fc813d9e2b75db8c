/** Limits of the flags of a project. */

import { and, eq, ne, sql } from "drizzle-orm";
import type { MetadataTx } from "../../accounts/db.ts";
import { flag } from "../../accounts/schema.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { Flag, FlagFields } from "../fields.ts";
import { filtersInvalid } from "../rules/errors.ts";
import { checkKeyCharacters, keyFromName, keyOfReplaced, keyOfRestored, unusedKey } from "../rules/key.ts";

/** Upstream rejects the 2,001st only in its newest version; Flagkeep promises a list of 10,000. */
const flagsPerProjectMax = 20_000;
/** Everything evaluated is in memory, several times its stored size, and is rebuilt on each change. */
const projectFiltersBytesMax = 64 * 1024 * 1024;
/** Flags with shorter filters are only limited by their number. */
const shortFiltersBytes = 16 * 1024;

/** @throws {InvalidFieldError} the project has too many flags for another one. */
export function checkFlagCount(t: MetadataTx, projectId: number): void {
  const count = t
    .select({ count: sql<number>`count(*)` })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.deleted, false)))
    .get()!.count;
  if (count < flagsPerProjectMax) return;
  throw new InvalidFieldError(
    null,
    "invalid_input",
    `Maximum of ${flagsPerProjectMax.toLocaleString("en-US")} feature flags allowed per team. ` +
      "Please delete unused flags or contact support to increase this limit.",
  );
}

/**
 * @param before the current flag, whose filters may always become shorter.
 * @throws {InvalidFieldError} the filters of all flags of the project would be too long.
 */
export function checkProjectSize(t: MetadataTx, projectId: number, filters: JsonObject, before?: Flag): void {
  const bytes = getBytes(filters);
  if (bytes <= shortFiltersBytes) return;
  if (before !== undefined && !before.deleted && bytes <= getBytes(before.filters)) return;
  const isOther = before === undefined ? undefined : ne(flag.id, before.id);
  const others = t
    .select({ bytes: sql<number>`coalesce(sum(octet_length(${flag.filters})), 0)` })
    .from(flag)
    .where(and(eq(flag.projectId, projectId), eq(flag.deleted, false), isOther))
    .get()!.bytes;
  if (others + bytes <= projectFiltersBytesMax) return;
  throw filtersInvalid(
    `The filters of all flags of a project exceed maximum size of ${projectFiltersBytesMax}. ` +
      "Please delete unused flags, simplify conditions or reduce payload sizes.",
  );
}

const getBytes = (filters: JsonObject) => Buffer.byteLength(JSON.stringify(filters));

/*
 * Keys of flags: unique in a project; a deleted flag loses its key when another flag needs it.
 *
 * Source: contract, management-api 5.2 and README (creating over and restoring deleted flags).
 */

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
