/** 22 statements and insights as users ask them, which have to return a result at the default limits. */

import type { JsonObject } from "../../src/lib/json/value.ts";

export type Statement = { name: string } & ({ sql: string; isHogql?: boolean } | { insight: JsonObject });

const dateRange = { date_from: "-29d", date_to: null };
const steps = ["$pageview", "button clicked", "item added"];
const trend = (series: JsonObject, more: JsonObject = {}): JsonObject => {
  return { kind: "TrendsQuery", series: [series], dateRange, ...more };
};

/** Groups events by day and a property: compared with the same statement on a typed column. */
export const groupedByProperty: Statement & { sql: string } = {
  name: "events by day and property",
  sql: "SELECT date_trunc('day', timestamp) AS day, properties->>'$browser' AS browser, count(*) AS n FROM events GROUP BY day, browser ORDER BY day, browser",
};

export const statements: readonly Statement[] = [
  { name: "events by name", sql: "SELECT event, count(*) AS n FROM events GROUP BY event ORDER BY n DESC" },
  groupedByProperty,
  {
    name: "distinct ids by day",
    sql: "SELECT date_trunc('day', timestamp) AS day, count(DISTINCT distinct_id) AS users FROM events GROUP BY day ORDER BY day",
  },
  {
    name: "persons by day",
    sql: "SELECT date_trunc('day', timestamp) AS day, count(DISTINCT person_id) AS persons FROM events GROUP BY day ORDER BY day",
  },
  {
    name: "persons by event and property",
    sql: "SELECT event, properties->>'city' AS city, count(DISTINCT person_id) AS persons FROM events GROUP BY ALL ORDER BY persons DESC",
  },
  {
    name: "most active persons",
    sql: "SELECT distinct_id, count(*) AS n, max(timestamp) AS last FROM events GROUP BY distinct_id ORDER BY n DESC LIMIT 100",
  },
  {
    name: "sessions and their length",
    sql: "SELECT avg(seconds) AS seconds, count(*) AS sessions FROM (SELECT properties->>'$session_id' AS session, epoch(max(timestamp) - min(timestamp)) AS seconds FROM events GROUP BY session)",
  },
  {
    name: "median and 95th percentile",
    sql: "SELECT event, median((properties->>'price')::DOUBLE) AS half, quantile_cont((properties->>'price')::DOUBLE, 0.95) AS most FROM events GROUP BY event",
  },
  {
    name: "most frequent URLs",
    sql: "SELECT properties->>'$current_url' AS url, count(*) AS n FROM events WHERE event = '$pageview' GROUP BY url ORDER BY n DESC LIMIT 50",
  },
  {
    name: "time since the previous event",
    sql: "SELECT event, avg(gap) AS gap FROM (SELECT event, epoch(timestamp - lag(timestamp) OVER (PARTITION BY distinct_id ORDER BY timestamp)) AS gap FROM events) GROUP BY event",
  },
  {
    name: "first event of each person",
    sql: "SELECT event, count(*) AS n FROM (SELECT distinct_id, arg_min(event, timestamp) AS event FROM events GROUP BY distinct_id) GROUP BY event",
  },
  {
    name: "newest events",
    sql: "SELECT timestamp, event, distinct_id, properties FROM events ORDER BY timestamp DESC LIMIT 100",
  },
  {
    name: "values for each person",
    sql: "SELECT max(len(cities)) AS most, avg(len(cities)) AS average FROM (SELECT distinct_id, list(DISTINCT properties->>'city') AS cities FROM events GROUP BY distinct_id)",
  },
  {
    name: "events by a property of persons",
    sql: "SELECT p.properties->>'plan' AS plan, e.event, count(*) AS n FROM events e JOIN persons p ON p.id = e.person_id GROUP BY ALL ORDER BY n DESC",
  },
  {
    name: "distinct values of an almost unique property",
    sql: "SELECT count(DISTINCT properties->>'$insert_id') AS n FROM events",
  },
  {
    name: "persons with two events",
    sql: "SELECT count(*) AS n FROM (SELECT distinct_id FROM events WHERE event = 'search used' INTERSECT SELECT distinct_id FROM events WHERE event = 'item added')",
  },
  {
    name: "weekly active persons, HogQL",
    isHogql: true,
    sql: "SELECT toStartOfWeek(timestamp) AS week, uniq(person_id) AS persons FROM events GROUP BY week ORDER BY week",
  },
  {
    name: "average by a property, HogQL",
    isHogql: true,
    sql: "SELECT properties.city AS city, avg(toFloat(properties.price)) AS price, countIf(properties.plan = 'enterprise') AS large FROM events GROUP BY city",
  },
  { name: "trend of unique persons", insight: trend({ event: "$pageview", math: "dau" }) },
  {
    name: "trend by a property",
    insight: trend({ event: "$pageview" }, { breakdownFilter: { breakdown: "$browser" } }),
  },
  {
    name: "funnel by a property",
    insight: {
      kind: "FunnelsQuery",
      series: steps.map((event) => ({ event })),
      dateRange,
      breakdownFilter: { breakdown: "$browser" },
    },
  },
  {
    name: "weekly retention",
    insight: {
      kind: "RetentionQuery",
      dateRange,
      retentionFilter: {
        period: "Week",
        totalIntervals: 5,
        retentionType: "retention_first_time",
        targetEntity: { id: "$pageview", type: "events" },
        returningEntity: { id: "button clicked", type: "events" },
      },
    },
  },
];
