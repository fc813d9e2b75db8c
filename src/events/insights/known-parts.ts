/** Refuses the parts of a query that would be ignored and give other numbers than were asked for. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { UnknownQuery } from "../event-filters.ts";

const breakdownValuesDefault = 25;
const breakdownValuesMax = 1_000;

/** @throws {UnknownQuery} names the part. Parts that are null, empty or say the default are what clients send along. */
export function checkParts(query: JsonObject): void {
  const trends = partOf(query, "trendsFilter");
  const funnels = partOf(query, "funnelsFilter");
  const retention = partOf(query, "retentionFilter");
  const breakdown = partOf(query, "breakdownFilter");
  const [first] = listOf(breakdown.breakdowns);
  const series = listOf(query.series);
  const refused: [name: string, value: Json | undefined, isDefault?: Json][] = [
    ...series.map(({ kind }): [string, Json | undefined, Json] => ["series of kind", kind, "EventsNode"]),
    ...series.map((one): [string, Json | undefined] => ["optionalInFunnel", one.optionalInFunnel]),
    ["samplingFactor", query.samplingFactor, 1],
    ["aggregation_group_type_index", query.aggregation_group_type_index],
    ["conversionGoal", query.conversionGoal],
    ["formula", query.formula],
    ...["formula", "formulas", "formulaNodes"].map((name): [string, Json | undefined] => [
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
    ["histogram_bin_count", first?.histogram_bin_count],
    ["normalize_url", first?.normalize_url],
    // Its place is next to `interval`.
    ...["trendsFilter", "funnelsFilter", "retentionFilter", "lifecycleFilter", "dateRange"].map(
      (name): [string, Json | undefined] => [`${name}.weekStartDay`, partOf(query, name).weekStartDay],
    ),
    ["second entry of breakdowns", listOf(breakdown.breakdowns)[1]],
    ...(query.kind === "TrendsQuery" ? [] : series.map(mathOfPersons)),
  ];
  for (const [name, value, isDefault] of refused) {
    if (isNothing(value) || value === isDefault) continue;
    throw new UnknownQuery(`The ${name} ${JSON.stringify(value)} cannot be computed.`);
  }
}

/** Persons are counted who did something at all. */
function mathOfPersons({ math }: JsonObject): [name: string, value: Json | undefined] {
  return ["math", math === "total" || math === "dau" ? null : math];
}

/** A funnel is told apart by the value with which it began. */
function isOfFirstStep({
  breakdownAttributionType: type,
  breakdownAttributionValue: step,
}: JsonObject): boolean {
  return type === "first_touch" || (type === "step" && (step ?? 0) === 0);
}

/** How many values of a breakdown are shown by themselves. @throws {UnknownQuery} */
export function breakdownLimit(query: JsonObject): number {
  const limit = partOf(query, "breakdownFilter").breakdown_limit ?? breakdownValuesDefault;
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= breakdownValuesMax)
    return limit;
  throw new UnknownQuery(`A breakdown_limit is a whole number from 1 to ${breakdownValuesMax}.`);
}

function partOf(query: JsonObject, name: string): JsonObject {
  const part = query[name];
  return isJsonObject(part) ? part : {};
}

const listOf = (list: Json | undefined) => (Array.isArray(list) ? list.filter(isJsonObject) : []);

function isNothing(value: Json | undefined): boolean {
  if (value === undefined || value === null || value === false || value === "") return true;
  return Array.isArray(value) ? value.every(isNothing) : false;
}
