/** Limits of the flags of a project. */

import { and, eq, ne, sql } from "drizzle-orm";
import type { MetadataTx } from "../../accounts/db.ts";
import { flag } from "../../accounts/schema.ts";
import { InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { Flag } from "../fields.ts";
import { filtersInvalid } from "../rules/errors.ts";

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
