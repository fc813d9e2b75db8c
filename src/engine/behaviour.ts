/**
 * Cohorts of persons who performed events: computed from the event store, then treated as lists of members.
 *
 * Source: contract, README "Behavioural cohorts".
 */

import type { EventSql } from "../events/dialect.ts";
import { closely } from "../events/property-sql.ts";
import type { CohortDefinition } from "../flags/rules/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json.ts";

/** Persons (by uuid) of the lists that stand in for behavioural filters, by the lists' ids, which are negative. */
export type BehaviourLists = Map<number, Set<string>>;

interface Behaviour {
  listId: number;
  filter: JsonObject;
}

/** Puts a list of members in place of every behavioural filter in the cohorts. */
export function withBehaviourLists(cohorts: readonly CohortDefinition[]): {
  cohorts: CohortDefinition[];
  behaviours: Behaviour[];
} {
  const behaviours: Behaviour[] = [];
  const rewrite = (node: Json): Json => {
    if (Array.isArray(node)) return node.map(rewrite);
    if (!isJsonObject(node)) return node;
    if (node.type !== "behavioral") {
      return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, rewrite(value)]));
    }
    const listId = -1 - behaviours.length;
    behaviours.push({ listId, filter: node });
    return { type: "cohort", key: "id", value: listId, operator: "in", negation: node.negation === true };
  };
  const rewritten = cohorts.map((cohort) =>
    cohort.isStatic || cohort.filters === null
      ? cohort
      : { ...cohort, filters: rewrite(cohort.filters) as JsonObject },
  );
  const lists = behaviours.map(({ listId }): CohortDefinition => {
    return { id: listId, name: "performed events", isStatic: true, filters: null };
  });
  return { cohorts: [...rewritten, ...lists], behaviours };
}

/** Finds who performed what the behavioural filters ask for. */
export async function behaviourLists(
  store: EventSql,
  projectId: number,
  behaviours: readonly Behaviour[],
  now: number,
): Promise<BehaviourLists> {
  const lists: BehaviourLists = new Map();
  for (const { listId, filter } of behaviours) {
    const sql = behaviourSql(store, projectId, filter, now);
    const rows = sql === undefined ? [] : await store.rows(sql);
    lists.set(listId, new Set(rows.map(([uuid]) => uuid as string)));
  }
  return lists;
}

const unitMs: Record<string, number> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 2_592_000_000,
  year: 31_536_000_000,
};
const comparisons: Record<string, string> = { gte: ">=", gt: ">", lte: "<=", lt: "<", eq: "=", exact: "=" };

/** SQL for the persons, or undefined for a kind of behaviour that is not known: nobody then. */
function behaviourSql(
  store: EventSql,
  projectId: number,
  filter: JsonObject,
  now: number,
): string | undefined {
  const { dialect } = store;
  const { key, value, time_value: count, time_interval: unit } = filter;
  const isRepeated = value === "performed_event_multiple";
  if (typeof key !== "string" || (value !== "performed_event" && !isRepeated)) return undefined;
  const periodMs = Number(count ?? 30) * (unitMs[String(unit ?? "day")] ?? Number.NaN);
  const wanted = isRepeated ? Number(filter.operator_value ?? 1) : 1;
  const sign = isRepeated ? comparisons[String(filter.operator ?? "gte")] : ">=";
  if (!Number.isFinite(periodMs) || !Number.isFinite(wanted) || sign === undefined) return undefined;
  const filters = Array.isArray(filter.event_filters) ? filter.event_filters.filter(isJsonObject) : [];
  const conditions = filters.map((one) => closely(store.dialect, store.eventProperties, one));
  if (conditions.includes(undefined)) return undefined;
  return `SELECT o.person_uuid::VARCHAR FROM events e
    JOIN ${dialect.owners(projectId)} o ON o.distinct_id = e.distinct_id
    WHERE e.project_id = ${projectId} AND e.event = ${dialect.text(key)}
      AND ${dialect.time("e")} >= ${dialect.moment(Math.round((now - periodMs) * 1_000))}
      ${conditions.map((condition) => `AND (${condition})`).join(" ")}
    GROUP BY o.person_uuid HAVING count(*) ${sign} ${wanted}`;
}
