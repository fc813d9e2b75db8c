/**
 * Cohorts of persons who performed events: computed from the event store, then treated as lists of members.
 *
 * Source: contract, README "Behavioural cohorts".
 */

import { type BehaviourFilter, readBehaviour } from "../cohorts/behaviour-filter.ts";
import { cohortIdsIn } from "../cohorts/cohort-filters.ts";
import type { EventSql } from "../events/dialect.ts";
import { closely } from "../events/property-sql.ts";
import type { CohortDefinition } from "../flags/rules/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json.ts";
import { log } from "./report.ts";

/** Persons (by uuid) of the lists that stand in for behavioural filters, by the lists' ids, which are negative. */
export type BehaviourLists = Map<number, Set<string>>;

interface Behaviour {
  listId: number;
  behaviour: BehaviourFilter;
}

/** Puts a list of members in place of every behavioural filter in the cohorts that filters lead to. */
export function withBehaviourLists(
  cohorts: readonly CohortDefinition[],
  asked: readonly JsonObject[],
): {
  cohorts: CohortDefinition[];
  behaviours: Behaviour[];
} {
  const behaviours: Behaviour[] = [];
  const rewrite = (node: Json, cohortId: number): Json => {
    if (Array.isArray(node)) return node.map((one) => rewrite(one, cohortId));
    if (!isJsonObject(node)) return node;
    if (node.type !== "behavioral") {
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, rewrite(value, cohortId)]));
    }
    const behaviour = readBehaviour(node);
    if (typeof behaviour === "string") {
      // It may have been stored by a version that took it: as it is nobody meets it, and other cohorts go on.
      log("warn", "a condition of a cohort cannot be used: nobody meets it", {
        cohortId,
        problem: behaviour,
      });
      return node;
    }
    const listId = -1 - behaviours.length;
    behaviours.push({ listId, behaviour });
    return { type: "cohort", key: "id", value: listId, operator: "in", negation: node.negation === true };
  };
  const reached = cohortsReached(cohorts, asked);
  const rewritten = cohorts.map((cohort) =>
    cohort.isStatic || cohort.filters === null || !reached.has(cohort.id)
      ? cohort
      : { ...cohort, filters: rewrite(cohort.filters, cohort.id) as JsonObject },
  );
  const lists = behaviours.map(({ listId }): CohortDefinition => {
    return { id: listId, name: "performed events", isStatic: true, filters: null };
  });
  return { cohorts: [...rewritten, ...lists], behaviours };
}

/** Numbers of the cohorts that filters name, and of those within these. */
function cohortsReached(
  cohorts: readonly CohortDefinition[],
  asked: readonly JsonObject[],
): ReadonlySet<number> {
  const filtersOf = new Map(cohorts.map(({ id, isStatic, filters }) => [id, isStatic ? null : filters]));
  const reached = new Set<number>();
  const open = cohortIdsIn([...asked]);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (reached.has(id)) continue;
    reached.add(id);
    open.push(...cohortIdsIn(filtersOf.get(id) ?? null));
  }
  return reached;
}

/** Finds who performed what the behavioural filters ask for. */
export async function behaviourLists(
  store: EventSql,
  projectId: number,
  behaviours: readonly Behaviour[],
  now: number,
): Promise<BehaviourLists> {
  const lists: BehaviourLists = new Map();
  for (const behaviour of behaviours) {
    const sql = behaviourSql(store, projectId, behaviour, now);
    const rows = sql === undefined ? [] : await store.rows(sql);
    lists.set(behaviour.listId, new Set(rows.map(([uuid]) => uuid as string)));
  }
  return lists;
}

/** SQL for the persons, or undefined for a value that a filter of events cannot be tested with: nobody then. */
function behaviourSql(
  store: EventSql,
  projectId: number,
  { behaviour: { event, eventFilters, since, sign, times } }: Behaviour,
  now: number,
): string | undefined {
  const { dialect } = store;
  const conditions = eventFilters.map((one) => closely(store.dialect, store.eventProperties, one));
  const sinceMs = "atMs" in since ? since.atMs : now - since.agoMs;
  const time = dialect.time("e");
  if (conditions.includes(undefined)) return undefined;
  return `SELECT o.person_uuid::VARCHAR FROM events e
    JOIN ${dialect.owners(projectId)} o ON o.distinct_id = e.distinct_id
    WHERE e.project_id = ${projectId} AND e.event = ${dialect.text(event)}
      AND ${time} >= ${dialect.moment(Math.round(sinceMs * 1_000))} AND ${time} <= ${dialect.moment(now * 1_000)}
      ${conditions.map((condition) => `AND (${condition})`).join(" ")}
    GROUP BY o.person_uuid HAVING count(*) ${sign} ${times}`;
}
