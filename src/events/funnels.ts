/**
 * Funnels: how many people did a first thing, and of these how many a second after it, and so on, within a time.
 *
 * Who has reached a step is found with the latest possible start: of two ways through the steps so far the one that
 * began later has at least as much time left, so one number per person and step is enough.
 * Source of the queries and answers: PostHog's `FunnelsQuery`.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { UnknownQuery } from "./event-filters.ts";
import { quoted } from "./sql-text.ts";
import {
  breakdownOf,
  breakdownValuesMax,
  conditionsOf,
  eventName,
  foundEvents,
  objectsIn,
  otherValues,
  rangeIn,
  type TrendsRequest,
} from "./trends.ts";

const stepsMax = 20;
const windowMax = 3_650;
const unitSeconds: Record<string, number> = {
  ...{ second: 1, minute: 60, hour: 3_600 },
  ...{ day: 86_400, week: 7 * 86_400, month: 30 * 86_400 },
};

/**
 * Computes a funnel.
 *
 * @returns one object per step; with a breakdown one list of steps per value, the largest first.
 * @throws {UnknownQuery}
 */
export async function computeFunnel(
  connection: DuckDBConnection,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[] | JsonObject[][]> {
  const steps = objectsIn(query.series);
  if (steps.length < 1 || steps.length > stepsMax) {
    throw new UnknownQuery(`A funnel needs 1 to ${stepsMax} steps.`);
  }
  const filter = isJsonObject(query.funnelsFilter) ? query.funnelsFilter : {};
  if ((filter.funnelOrderType ?? "ordered") !== "ordered") {
    throw new UnknownQuery("Only ordered funnels can be computed.");
  }
  if ((filter.funnelVizType ?? "steps") !== "steps") {
    throw new UnknownQuery("Only the steps of a funnel can be computed.");
  }
  const windowSeconds = windowOf(filter);
  const range = await rangeIn(connection, request, query, "day");
  const breakdown = breakdownOf(query);
  const rows = await connection.runAndReadAll(
    `WITH found AS MATERIALIZED (
       ${foundEvents(request, range, {
         columns: [
           "epoch_us(e.timestamp) AS moment, e.historical AS lane, e.seq AS seq",
           `${breakdown ?? "NULL"} AS value`,
           ...steps.map(
             (step, index) => `coalesce((${conditionsOf(step, query).join(" AND ")}), false) AS is_${index}`,
           ),
         ],
         conditions: [
           `(${steps.map((step) => `(${conditionsOf(step, query).join(" AND ")})`).join(" OR ")})`,
         ],
       })}
     ),
     step_0 AS (SELECT who, moment, lane, seq, moment AS start, 0 AS took FROM found WHERE is_0)
     ${steps
       .slice(1)
       .map((_, index) => layer(index + 1, windowSeconds))
       .join("")},
     begun AS (SELECT who, arg_min(value, moment) AS value FROM found WHERE is_0 GROUP BY who),
     ranked AS (
       SELECT value, row_number() OVER (ORDER BY count(*) DESC, value) AS place FROM begun GROUP BY value
     ),
     shown AS (
       SELECT b.who, CASE WHEN r.place <= ${breakdownValuesMax} THEN b.value ELSE ${quoted(otherValues)} END AS value
       FROM begun b JOIN ranked r ON r.value IS NOT DISTINCT FROM b.value
     ),
     reached AS (
       ${steps
         .map(
           (_, index) =>
             `SELECT ${index} AS step, who, arg_min(took, moment) AS took FROM step_${index} GROUP BY who`,
         )
         .join(" UNION ALL ")}
     )
     SELECT s.value, r.step, count(*)::DOUBLE, avg(r.took) / 1e6, median(r.took) / 1e6
     FROM reached r JOIN shown s ON s.who = r.who GROUP BY ALL ORDER BY ALL`,
  );
  const byValue = new Map<string | null, Map<number, [number, number, number]>>();
  if (breakdown === undefined) byValue.set(null, new Map());
  for (const [value, step, ...facts] of rows.getRows() as [string | null, number, number, number, number][]) {
    const own = byValue.get(value) ?? new Map<number, [number, number, number]>();
    byValue.set(value, own.set(Number(step), facts));
  }
  const series = [...byValue].map(([value, own]) =>
    steps.map((step, order): JsonObject => {
      const [count = 0, average = null, median = null] = own.get(order) ?? [];
      const name = eventName(step);
      return {
        ...{
          action_id: step.event ?? null,
          name,
          custom_name: step.custom_name ?? null,
          order,
          type: "events",
          count,
        },
        average_conversion_time: order === 0 ? null : average,
        median_conversion_time: order === 0 ? null : median,
        ...(breakdown === undefined ? {} : { breakdown: [value ?? ""], breakdown_value: [value ?? ""] }),
      };
    }),
  );
  if (breakdown === undefined) return series[0]!;
  return series.sort((one, other) => Number(other[0]!.count) - Number(one[0]!.count));
}

/** Each way through the steps so far goes on with the first event of the next one that comes after it, in time. */
function layer(step: number, windowSeconds: number): string {
  // Of one event that is both steps, the earlier step's row comes last: nothing comes after itself.
  return `,
     step_${step} AS (
       SELECT who, moment, lane, seq, way.start AS start, moment - way.moment AS took FROM (
         SELECT who, moment, lane, seq, is_next,
           max(way) OVER (
             PARTITION BY who ORDER BY moment, lane, seq, is_next DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS way
         FROM (
           SELECT who, moment, lane, seq, {'start': start, 'moment': moment} AS way, false AS is_next FROM step_${step - 1}
           UNION ALL
           SELECT who, moment, lane, seq, NULL AS way, true AS is_next FROM found WHERE is_${step}
         )
       ) WHERE is_next AND way IS NOT NULL AND moment - way.start <= ${windowSeconds * 1e6}
     )`;
}

function windowOf(filter: JsonObject): number {
  const unit = unitSeconds[String(filter.funnelWindowIntervalUnit ?? "day")];
  const count = Number(filter.funnelWindowInterval ?? 14);
  if (unit === undefined || !Number.isFinite(count) || count <= 0 || count > windowMax) {
    throw new UnknownQuery("The funnel's window cannot be read.");
  }
  return unit * count;
}
