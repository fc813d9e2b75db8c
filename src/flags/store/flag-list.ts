/** Lists of flags, filtered and sorted by the database (contract: management-api 5.1). */

import {
  and,
  asc,
  desc,
  eq,
  gte,
  inArray,
  isNull,
  lt,
  ne,
  not,
  notInArray,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import { flag } from "../../accounts/schema.ts";
import type { Flag } from "../fields.ts";
import { getFlags } from "./flag.ts";

const staleAfterMs = 30 * 24 * 3_600_000;
/** Keys of survey flags, which are not listed. */
const internalKeyPattern = "survey-targeting-%";

export type FlagType = "boolean" | "multivariant" | "experiment" | "remote_config";

export interface FlagFilter {
  /** Case-insensitive part of key or name; a space matches any sequence of spaces, `-` and `_`. */
  search?: string;
  active?: boolean | "STALE";
  createdByIds?: number[];
  type?: FlagType;
  evaluationRuntime?: string;
  excludedKeys?: string[];
  tags?: string[];
  excludedTags?: string[];
  hasEvaluationTags?: boolean;
  /** Case-insensitive; for a deleted flag also its former key. */
  key?: string;
  /** Deleted flags instead of the others. */
  isDeleted?: boolean;
  /** Evaluated at or after this time. */
  lastCalledAfter?: Date;
  /** Not evaluated since this time, or never. */
  lastCalledBefore?: Date;
  /** A column of the API, `-` before it for descending; unknown ones are ignored. */
  order?: string;
}

const orderColumns = {
  id: flag.id,
  key: flag.key,
  name: flag.name,
  active: flag.active,
  version: flag.version,
  created_at: flag.createdAt,
  updated_at: flag.updatedAt,
  created_by: flag.createdById,
  last_called_at: flag.lastCalledAt,
  ensure_experience_continuity: flag.ensureExperienceContinuity,
  evaluation_runtime: flag.evaluationRuntime,
  is_remote_configuration: flag.isRemoteConfiguration,
  has_enriched_analytics: flag.hasEnrichedAnalytics,
  creation_context: flag.creationContext,
} as const;

/** The flags of a project that are not deleted, or those that are; newest first by default. */
export function listFlags(
  db: Reading,
  projectId: number,
  filter: FlagFilter,
  page: { limit: number; offset: number },
  now: Date,
): { flags: Flag[]; count: number } {
  const chosen = getCondition(projectId, filter, now);
  const count = db.select({ count: sql<number>`count(*)` }).from(flag).where(chosen).get()?.count ?? 0;
  const rows = db
    .select()
    .from(flag)
    .where(chosen)
    .orderBy(...getOrder(filter.order))
    .limit(page.limit)
    .offset(page.offset)
    .all();
  return { flags: getFlags(db, rows), count };
}

/** All flags that match a filter, without pagination. */
export function listAllFlags(db: Reading, projectId: number, filter: FlagFilter, now: Date): Flag[] {
  const chosen = getCondition(projectId, filter, now);
  return getFlags(
    db,
    db
      .select()
      .from(flag)
      .where(chosen)
      .orderBy(...getOrder(filter.order))
      .all(),
  );
}

function getCondition(projectId: number, filter: FlagFilter, now: Date): SQL | undefined {
  return and(
    eq(flag.projectId, projectId),
    eq(flag.deleted, filter.isDeleted ?? false),
    sql`${flag.key} NOT LIKE ${internalKeyPattern}`,
    filter.search ? searchCondition(filter.search) : undefined,
    filter.active === "STALE" ? staleCondition(now) : undefined,
    typeof filter.active === "boolean" ? eq(flag.active, filter.active) : undefined,
    filter.createdByIds ? inArray(flag.createdById, filter.createdByIds) : undefined,
    typeCondition(filter.type),
    filter.evaluationRuntime ? eq(flag.evaluationRuntime, filter.evaluationRuntime) : undefined,
    filter.excludedKeys?.length ? notInArray(flag.key, filter.excludedKeys) : undefined,
    filter.tags ? taggedWith(filter.tags) : undefined,
    filter.excludedTags?.length ? not(taggedWith(filter.excludedTags)) : undefined,
    filter.hasEvaluationTags === undefined
      ? undefined
      : filter.hasEvaluationTags
        ? ne(flag.evaluationTags, [])
        : eq(flag.evaluationTags, []),
    filter.lastCalledAfter ? gte(flag.lastCalledAt, filter.lastCalledAfter) : undefined,
    filter.lastCalledBefore
      ? or(lt(flag.lastCalledAt, filter.lastCalledBefore), isNull(flag.lastCalledAt))
      : undefined,
    filter.key === undefined ? undefined : keyCondition(filter.key, filter.isDeleted ?? false),
  );
}

/** For a deleted flag also its former key (`keyOfReplaced`). */
function keyCondition(key: string, isDeleted: boolean): SQL | undefined {
  const hasKey = sql`lower(${flag.key}) = lower(${key})`;
  if (!isDeleted) return hasKey;
  return or(hasKey, sql`lower(${flag.key}) = lower(${key}) || ':deleted:' || ${flag.id}`);
}

function typeCondition(type: FlagType | undefined): SQL | undefined {
  switch (type) {
    case "boolean":
      return eq(flag.variantCount, 0);
    case "multivariant":
      return sql`${flag.variantCount} > 0`;
    case "remote_config":
      return eq(flag.isRemoteConfiguration, true);
    case "experiment":
      return or(
        ne(flag.experimentSet, []),
        eq(flag.creationContext, "experiments"),
        sql`EXISTS (SELECT 1 FROM flag_link WHERE flag_link.flag_id = ${flag.id} AND flag_link.kind = 'experiment')`,
      );
    default:
      return undefined;
  }
}

/** Not called for 30 days, or never called, older than that and fully rolled out (5.1, STALE). */
function staleCondition(now: Date): SQL | undefined {
  const limit = new Date(now.getTime() - staleAfterMs);
  return and(
    eq(flag.active, true),
    or(
      lt(flag.lastCalledAt, limit),
      and(isNull(flag.lastCalledAt), lt(flag.createdAt, limit), eq(flag.isFullyRolledOut, true)),
    ),
  );
}

/** The search text of a flag: key and name, and both again with their words separated. Lower case. */
export function getSearchString(key: string, name: string): string {
  const lower = [key, name].map((part) => part.toLowerCase());
  return [...lower, ...lower.map(splitWords)].join("\n");
}

/** SQLite folds only ASCII, so the search text is stored in lower case. */
function searchCondition(search: string): SQL {
  const lower = search.trim().toLowerCase();
  const wanted = /\s/.test(lower) ? splitWords(lower) : lower;
  // Unlike LIKE, it has no wildcards and does not end at a NUL character.
  return sql`instr(${flag.searchText}, ${wanted}) > 0`;
}

function splitWords(text: string): string {
  return text.replace(/[\s_-]+/g, " ");
}

function taggedWith(names: readonly string[]): SQL {
  const normal = names.map((name) => name.trim().toLowerCase());
  const list = sql.join(
    normal.map((name) => sql`${name}`),
    sql`, `,
  );
  return sql`EXISTS (SELECT 1 FROM tag WHERE tag.item_kind = 'flag' AND tag.item_id = ${flag.id} AND tag.name IN (${list}))`;
}

function getOrder(order: string | undefined): SQL[] {
  const isDescending = order?.startsWith("-") ?? true;
  const name = (order ?? "-created_at").replace(/^-/, "");
  const column = Object.hasOwn(orderColumns, name)
    ? orderColumns[name as keyof typeof orderColumns]
    : undefined;
  if (!column) return [desc(flag.createdAt), desc(flag.id)];
  // The ID breaks ties, so that pages neither repeat nor miss a flag.
  return isDescending ? [desc(column), desc(flag.id)] : [asc(column), asc(flag.id)];
}
