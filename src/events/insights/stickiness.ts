/**
 * Stickiness: how many users were active in how many intervals of a range. Source of queries and results: PostHog's
 * `StickinessQuery`.
 */

import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import type { EventSql } from "../sql-dialect.ts";
import {
  eventName,
  eventSource,
  getConditions,
  intervalIn,
  objectsIn,
  rangeIn,
  readsPersons,
  type TrendsRequest,
} from "./event-source.ts";
import { getBuckets, type Range } from "./trend-range.ts";
import { comparedWith } from "./trends.ts";

const seriesMax = 26;

/** How many events of an interval make a user active in it, by PostHog's names. */
const criteria: Record<string, string> = { gte: ">=", lte: "<=", exact: "=" };

/**
 * Computes stickiness.
 * @returns one object per series: `data` has the users of 1, 2, … intervals, or of at least as many with
 * `computedAs: "cumulative"`; with `compareFilter` followed by those of the earlier period
 * @throws {UnknownQueryError} names the unsupported part
 */
export async function computeStickiness(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const interval = intervalIn(query);
  const series = objectsIn(query.series);
  if (series.length === 0 || series.length > seriesMax)
    throw new UnknownQueryError(`A stickiness query requires 1 to ${seriesMax} series.`);
  const filter = isJsonObject(query.stickinessFilter) ? query.stickinessFilter : {};
  const isCumulative = getComputedAs(filter) === "cumulative";
  const having = getCriteria(filter);
  const { dialect } = store;
  const compute = async (range: Range): Promise<JsonObject[]> => {
    const count = getBuckets(range, interval).length;
    const days = Array.from({ length: count }, (_, index) => index + 1);
    const results: JsonObject[] = [];
    for (const [order, one] of series.entries()) {
      const found = eventSource(dialect, request, range, {
        columns: [`${dialect.startOf(interval, "local_time", range.weekStartDay)} AS bucket`],
        conditions: getConditions(store, one, query),
        reads: { person: readsPersons(query, [one]) },
      });
      const rows = await store.rows(
        `SELECT intervals, count(*)::DOUBLE AS persons FROM (
           SELECT who, count(*) AS intervals FROM (
             SELECT who, bucket FROM (${found}) AS f GROUP BY who, bucket HAVING ${having}
           ) AS a GROUP BY who
         ) AS w GROUP BY intervals`,
      );
      const persons = new Map(rows.map(([intervals, number]) => [Number(intervals), Number(number)]));
      const data = days.map((day) => persons.get(day) ?? 0);
      if (isCumulative) for (let at = count - 2; at >= 0; at--) data[at]! += data[at + 1]!;
      const name = eventName(one);
      results.push({
        action: {
          id: one.event ?? null,
          type: "events",
          order,
          name,
          custom_name: one.custom_name ?? null,
          math: one.math ?? "total",
        },
        label: typeof one.custom_name === "string" ? one.custom_name : name,
        count: data.reduce((sum, number) => sum + number, 0),
        data,
        days,
        labels: days.map((day) => `${day} ${interval}${day === 1 ? "" : "s"}`),
      });
    }
    return results;
  };
  return await comparedWith(query, await rangeIn(store, request, query, interval), compute);
}

function getComputedAs({ computedAs = null }: JsonObject): string {
  if (computedAs === null) return "non_cumulative";
  if (computedAs === "cumulative" || computedAs === "non_cumulative") return computedAs;
  throw new UnknownQueryError(
    `Invalid computedAs ${JSON.stringify(computedAs)}: expected "cumulative" or "non_cumulative".`,
  );
}

function getCriteria({ stickinessCriteria: written = null }: JsonObject): string {
  if (written === null) return "count(*) >= 1";
  const { operator, value } = isJsonObject(written) ? written : {};
  const isKnown = typeof operator === "string" && Object.hasOwn(criteria, operator);
  if (!isKnown || typeof value !== "number" || !Number.isInteger(value) || value < 1)
    throw new UnknownQueryError(
      `Invalid stickinessCriteria ${JSON.stringify(written)}: expected an operator (${Object.keys(criteria).join(", ")}) and an integer from 1 as value.`,
    );
  return `count(*) ${criteria[operator as string]} ${value}`;
}
