/** Rejects parts of a query that would be ignored and change the result. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";

const breakdownValuesDefault = 25;
const breakdownValuesMax = 1_000;

/**
 * @throws {UnknownQueryError} names the part. Null, empty and default parts are accepted, because clients send them.
 */
export function validateQuery(query: JsonObject): void {
  const trends = getPart(query, "trendsFilter");
  const funnels = getPart(query, "funnelsFilter");
  const retention = getPart(query, "retentionFilter");
  const breakdown = getPart(query, "breakdownFilter");
  const [first] = toList(breakdown.breakdowns);
  const series = toList(query.series);
  const isTrend = query.kind === "TrendsQuery";
  const rejected: [name: string, value: Json | undefined, isDefault?: Json][] = [
    ...series.map(({ kind }): [string, Json | undefined, Json] => ["series of kind", kind, "EventsNode"]),
    ...series.map((node): [string, Json | undefined] => ["optionalInFunnel", node.optionalInFunnel]),
    ["samplingFactor", query.samplingFactor, 1],
    ["aggregation_group_type_index", query.aggregation_group_type_index],
    ["conversionGoal", query.conversionGoal],
    ["formula", query.formula],
    ...(isTrend ? [] : ["formula", "formulas", "formulaNodes"]).map((name): [string, Json | undefined] => [
      name,
      trends[name],
    ]),
    ["smoothingIntervals", trends.smoothingIntervals, 1],
    ["exclusions", funnels.exclusions],
    ["funnelAggregateByHogQL", funnels.funnelAggregateByHogQL, "person_id"],
    ["breakdownAttributionType", isOfFirstStep(funnels) ? null : funnels.breakdownAttributionType],
    ["cumulative", retention.cumulative],
    ["minimumOccurrences", retention.minimumOccurrences, 1],
    ["retentionCustomBrackets", retention.retentionCustomBrackets],
    ["timeWindowMode", retention.timeWindowMode, "strict_calendar_dates"],
    ["aggregationType", retention.aggregationType, "count"],
    ["breakdown_histogram_bin_count", breakdown.breakdown_histogram_bin_count],
    ["breakdown_normalize_url", breakdown.breakdown_normalize_url],
    ...toList(breakdown.breakdowns).flatMap((item): [string, Json | undefined][] => [
      ["histogram_bin_count", item.histogram_bin_count],
      ["normalize_url", item.normalize_url],
    ]),
    // The week start is supported next to `interval` only.
    ...[
      "trendsFilter",
      "funnelsFilter",
      "retentionFilter",
      "lifecycleFilter",
      "stickinessFilter",
      "dateRange",
    ].map((name): [string, Json | undefined] => [`${name}.weekStartDay`, getPart(query, name).weekStartDay]),
    ["intervalCount", query.intervalCount, 1],
    ...(query.kind === "StickinessQuery"
      ? [["breakdown", breakdown.breakdown ?? first?.property] as [string, Json | undefined]]
      : []),
    ...(isTrend
      ? []
      : [
          ["second entry of breakdowns", toList(breakdown.breakdowns)[1]] as [string, Json | undefined],
          ...series.map(mathOfPersons),
        ]),
  ];
  for (const [name, value, isDefault] of rejected) {
    if (isNothing(value) || value === isDefault) continue;
    throw new UnknownQueryError(`The ${name} ${JSON.stringify(value)} is not supported.`);
  }
}

/** Outside of trends, persons are counted by whether they were active at all. */
function mathOfPersons({ math }: JsonObject): [name: string, value: Json | undefined] {
  return ["math", math === "total" || math === "dau" ? null : math];
}

/** A funnel's breakdown is by the value of its first step. */
function isOfFirstStep({
  breakdownAttributionType: type,
  breakdownAttributionValue: step,
}: JsonObject): boolean {
  return type === "first_touch" || (type === "step" && (step ?? 0) === 0);
}

/** Number of breakdown values shown separately. @throws {UnknownQueryError} */
export function breakdownLimit(query: JsonObject): number {
  const limit = getPart(query, "breakdownFilter").breakdown_limit ?? breakdownValuesDefault;
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= breakdownValuesMax)
    return limit;
  throw new UnknownQueryError(`breakdown_limit must be an integer from 1 to ${breakdownValuesMax}.`);
}

function getPart(query: JsonObject, name: string): JsonObject {
  const part = query[name];
  return isJsonObject(part) ? part : {};
}

const toList = (list: Json | undefined) => (Array.isArray(list) ? list.filter(isJsonObject) : []);

function isNothing(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === false || value === "") return true;
  return Array.isArray(value) ? value.every(isNothing) : false;
}
