/**
 * Cohorts of persons who performed events: computed from the event store, then treated as lists of members. Source:
 * contract, README "Behavioral cohorts".
 */

import { type BehaviorFilter, readBehavior } from "../cohorts/behavior-filter.ts";
import { cohortIdsIn } from "../cohorts/cohort-filters.ts";
import { closely } from "../events/property-sql.ts";
import type { EventSql } from "../events/sql-dialect.ts";
import type { CohortDefinition } from "../flags/rules/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { log } from "./report.ts";

/** Person UUIDs of the lists that replace behavioral filters, by list ID (negative). */
export type BehaviorLists = Map<number, Set<string>>;

interface Behavior {
  listId: number;
  behavior: BehaviorFilter;
}

/** Replaces every behavioral filter in the cohorts that filters reference by a list of members. */
export function withBehaviorLists(
  cohorts: readonly CohortDefinition[],
  requested: readonly JsonObject[],
): {
  cohorts: CohortDefinition[];
  behaviors: Behavior[];
} {
  const behaviors: Behavior[] = [];
  const rewrite = (node: Json, cohortId: number): Json => {
    if (Array.isArray(node)) return node.map((item) => rewrite(item, cohortId));
    if (!isJsonObject(node)) return node;
    if (node.type !== "behavioral") {
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, rewrite(value, cohortId)]));
    }
    const behavior = readBehavior(node);
    if (typeof behavior === "string") {
      // An older version may have accepted it: it matches no person, and other cohorts keep working.
      log("warn", "ignoring an invalid cohort condition: it matches no person", {
        cohortId,
        problem: behavior,
      });
      return node;
    }
    const listId = -1 - behaviors.length;
    behaviors.push({ listId, behavior });
    return { type: "cohort", key: "id", value: listId, operator: "in", negation: node.negation === true };
  };
  const used = usedCohorts(cohorts, requested);
  const rewritten = cohorts.map((cohort) =>
    cohort.isStatic || cohort.filters === null || !used.has(cohort.id)
      ? cohort
      : { ...cohort, filters: rewrite(cohort.filters, cohort.id) as JsonObject },
  );
  const lists = behaviors.map(({ listId }): CohortDefinition => {
    return { id: listId, name: "performed events", isStatic: true, filters: null };
  });
  return { cohorts: [...rewritten, ...lists], behaviors };
}

/** IDs of the cohorts that filters reference, directly or indirectly. */
function usedCohorts(
  cohorts: readonly CohortDefinition[],
  asked: readonly JsonObject[],
): ReadonlySet<number> {
  const filtersById = new Map(cohorts.map(({ id, isStatic, filters }) => [id, isStatic ? null : filters]));
  const used = new Set<number>();
  const open = cohortIdsIn([...asked]);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (used.has(id)) continue;
    used.add(id);
    open.push(...cohortIdsIn(filtersById.get(id) ?? null));
  }
  return used;
}

/** Finds the persons who match each behavioral filter. */
export async function behaviorLists(
  store: EventSql,
  projectId: number,
  behaviors: readonly Behavior[],
  now: number,
): Promise<BehaviorLists> {
  const lists: BehaviorLists = new Map();
  for (const behavior of behaviors) {
    const sql = behaviorSql(store, projectId, behavior, now);
    const rows = sql === undefined ? [] : await store.rows(sql);
    lists.set(behavior.listId, new Set(rows.map(([uuid]) => uuid as string)));
  }
  return lists;
}

/** SQL for the persons; undefined for a value not supported by event filters, which matches no person. */
function behaviorSql(
  store: EventSql,
  projectId: number,
  { behavior: { event, eventFilters, since, sign, times } }: Behavior,
  now: number,
): string | undefined {
  const { dialect } = store;
  const conditions = eventFilters.map((eventFilter) =>
    closely(store.dialect, store.eventProperties, eventFilter),
  );
  const sinceMs = "atMs" in since ? since.atMs : now - since.agoMs;
  const time = dialect.time("e");
  if (conditions.includes(undefined)) return undefined;
  return `SELECT o.person_uuid::VARCHAR FROM events e
    JOIN ${dialect.owners(projectId)} o ON o.distinct_id = e.distinct_id
    WHERE e.project_id = ${projectId} AND e.event = ${dialect.text(event)}
      AND ${time} >= ${dialect.timestamp(Math.round(sinceMs * 1_000))} AND ${time} <= ${dialect.timestamp(now * 1_000)}
      ${conditions.map((condition) => `AND (${condition})`).join(" ")}
    GROUP BY o.person_uuid HAVING count(*) ${sign} ${times}`;
}
