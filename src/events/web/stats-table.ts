/** Lists of web analytics: visitors, page views, bounce rate and conversions by a property of visits, or by page. */

import type { JsonObject } from "../../lib/json/value.ts";
import { isAboutPerson, UnknownQueryError } from "../event-filters.ts";
import { type EventSql, looseStringAt } from "../sql-dialect.ts";
import { conversionGoalIn, conversionsByVisitor } from "./conversions.ts";
import { propertyOfFilter, visitFilterSql, webFilterSql, zoneTable } from "./filters.ts";
import { figures, inPeriod, numberOrNull } from "./overview.ts";
import {
  pathSql,
  previousPathName,
  previousPathSql,
  type VisitPropertyName,
  visitProperties,
} from "./visit-fields.ts";
import {
  inRanges,
  isView,
  keyedHits,
  periods,
  roleColumns,
  visitAggregates,
  visitSource,
  withOwners,
} from "./visits.ts";
import { readWebQuery, type WebQuery, type WebRequest } from "./web-query.ts";

const limitDefault = 100;
export const webRowsMax = 1_000;
const webOffsetMax = 1_000_000;

/** Values of `breakdownBy`; PostHog's names. */
const breakdowns = {
  Page: undefined,
  InitialPage: "entryPath",
  ExitPage: "exitPath",
  InitialReferringDomain: "referrer",
  InitialChannelType: "channel",
  InitialUTMSource: "source",
  InitialUTMMedium: "medium",
  InitialUTMCampaign: "campaign",
  InitialUTMTerm: "term",
  InitialUTMContent: "content",
  InitialUTMSourceMediumCampaign: "sourceMediumCampaign",
  Browser: "browser",
  OS: "os",
  DeviceType: "deviceType",
  Country: undefined,
  Language: "language",
  Viewport: "viewport",
} as const satisfies Record<string, VisitPropertyName | undefined>;
type Breakdown = keyof typeof breakdowns;
export const breakdownNames = Object.keys(breakdowns) as Breakdown[];

/** Visits without a campaign are listed too, as in PostHog. */
const showsNull = (breakdown: Breakdown) => /^InitialUTM/.test(breakdown);

const columnPrefix = "context.columns.";
const orders = {
  Visitors: "visitors",
  Views: "views",
  BounceRate: "bounce_rate",
  AvgTimeOnPage: "avg_time_on_page",
  AverageScrollPercentage: "average_scroll_percentage",
  ScrollGt80Percentage: "scroll_gt80_percentage",
  TotalConversions: "total_conversions",
  UniqueConversions: "unique_conversions",
  ConversionRate: "conversion_rate",
} as const;
/** Figures that are no amounts: their bar is the value itself. */
const fractions = ["bounce_rate", "conversion_rate", "average_scroll_percentage", "scroll_gt80_percentage"];
const averages = [...fractions, "avg_time_on_page"];

const previousPageFigures: Readonly<Record<string, string>> = {
  avg_time_on_page: "CASE WHEN e.seconds >= 0 THEN e.seconds END",
  average_scroll_percentage: "e.depth",
  scroll_gt80_percentage: "CASE WHEN e.depth IS NOT NULL THEN CASE WHEN e.depth > 0.8 THEN 1 ELSE 0 END END",
};

/** One list, most visitors first. @throws {UnknownQueryError} names the unsupported part */
export async function computeWebStats(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const web = await readWebQuery(store, request, query);
  const breakdown = breakdownIn(query);
  const { limit, offset } = pageIn(query);
  const goal = conversionGoalIn(query, request);
  const names = figuresIn(query, breakdown, goal !== undefined);
  const conversions = goal && conversionsByVisitor(store, web, goal, names.includes("conversion_revenue"));
  const order = orderIn(query, names);
  const rows = await store.rows(
    `SELECT f.*, sum(f.${order.by}_0) OVER () AS total FROM (${await figuresSql(store, web, { breakdown, names, conversions })}) AS f
     ORDER BY ${orderSql(order, names)} LIMIT ${limit + 1} OFFSET ${offset}`,
  );
  const isEstimated = rows.slice(0, limit).some((row) => Number(row[1]) > 0);
  const results = rows.slice(0, limit).map(([value, , ...figuresAndTotal]) => {
    const total = numberOrNull(figuresAndTotal.at(-1)) ?? 0;
    const pairs = names.map((_, index) => [
      numberOrNull(figuresAndTotal[2 * index]),
      web.previous === undefined ? null : numberOrNull(figuresAndTotal[2 * index + 1]),
    ]);
    const ordered = pairs[names.indexOf(order.by)]![0] ?? 0;
    const fraction = fractions.includes(order.by) ? ordered : total === 0 ? 0 : ordered / total;
    return [shownValue(breakdown, value), ...pairs, fraction, ""];
  });
  return {
    columns: ["breakdown_value", ...names, "ui_fill_fraction", "cross_sell"].map(
      (name) => columnPrefix + name,
    ),
    results,
    hasMore: rows.length > limit,
    limit,
    offset,
    ...(breakdown === "Country" ? { isEstimated } : {}),
    usedPreAggregatedTables: false,
  };
}

/** The figures of each row; with a goal those of its conversions, as in PostHog. @throws {UnknownQueryError} */
function figuresIn(query: JsonObject, breakdown: Breakdown, hasGoal: boolean): string[] {
  const isWanted = (name: string) => query[name] === true;
  for (const name of ["includeScrollDepth", "includeAvgTimeOnPage"])
    if (isWanted(name) && (breakdown !== "Page" || hasGoal))
      throw new UnknownQueryError(`${name} requires the breakdownBy "Page", without a conversionGoal.`);
  if (hasGoal)
    return [
      "visitors",
      "total_conversions",
      "unique_conversions",
      "conversion_rate",
      ...(isWanted("includeRevenue") ? ["conversion_revenue"] : []),
    ];
  return [
    "visitors",
    "views",
    ...(isWanted("includeAvgTimeOnPage") ? ["avg_time_on_page"] : []),
    ...(isWanted("includeBounceRate") ? ["bounce_rate"] : []),
    ...(isWanted("includeScrollDepth") ? ["average_scroll_percentage", "scroll_gt80_percentage"] : []),
  ];
}

interface Figures {
  breakdown: Breakdown;
  names: readonly string[];
  /** SQL by `conversionsByVisitor`, if the query has a goal. */
  conversions: string | undefined;
}

/** SQL for `value`, `estimated`, and two columns per figure: current and previous. */
async function figuresSql(store: EventSql, web: WebQuery, figures: Figures): Promise<string> {
  const { breakdown } = figures;
  if (breakdown === "Page") return await pagesSql(store, web, figures);
  const source = await valuedVisits(store, web, breakdown);
  return byValue(source, figures, showsNull(breakdown) ? "" : "HAVING count(v.value) > 0");
}

/**
 * SQL for the figures of rows with `value`, `estimated`, `period`, `who`, `views`, and for bounce rates `bounced`.
 * @param shown a condition on groups; one on `source` would be evaluated for all events
 */
function byValue(source: string, { names, conversions }: Omit<Figures, "breakdown">, shown = ""): string {
  const hasBounces = names.includes("bounce_rate");
  const ofPeriods = (getValue: (period: number) => string[]) => Object.values(periods).flatMap(getValue);
  const within = (period: number, value: string) => `CASE WHEN ${inPeriod(period)} THEN ${value} ELSE 0 END`;
  // First by visitor: one grouping instead of a distinct count for each period.
  const ofVisitors = ofPeriods((period) => [
    `max(${within(period, "1")}) AS is_in_${period}`,
    `sum(${within(period, "e.views")}) AS views_${period}`,
    ...(hasBounces
      ? [
          `sum(${within(period, "e.bounced")}) AS bounces_${period}`,
          `sum(${within(period, "1")}) AS visits_${period}`,
        ]
      : []),
  ]);
  const sums = ofPeriods((period) => [
    `sum(v.is_in_${period}) AS visitors_${period}`,
    `sum(v.views_${period}) AS views_${period}`,
    ...(hasBounces
      ? [`sum(v.bounces_${period}) * 1.0 / nullif(sum(v.visits_${period}), 0) AS bounce_rate_${period}`]
      : []),
    ...(conversions === undefined ? [] : conversionSums(period, names.includes("conversion_revenue"))),
  ]);
  const converted = conversions === undefined ? "" : `LEFT JOIN (${conversions}) AS c ON c.who = v.who`;
  const order = names.flatMap((name) => Object.values(periods).map((period) => `g.${name}_${period}`));
  return `SELECT g.value AS value, g.estimated AS estimated, ${order.join(", ")} FROM (
      SELECT v.value AS value, sum(v.estimated) AS estimated, ${sums.join(", ")} FROM (
        SELECT e.value AS value, e.who AS who, sum(e.estimated) AS estimated, ${ofVisitors.join(", ")}
        FROM (${source}) AS e GROUP BY e.value, e.who
      ) AS v ${converted} GROUP BY v.value ${shown}
    ) AS g`;
}

/** SQL for the conversions of visitors `v` in a row; those of `c` are of the whole range. */
function conversionSums(period: number, hasRevenue: boolean): string[] {
  const isConverted = `v.is_in_${period} = 1 AND coalesce(c.goals_${period}, 0) > 0`;
  const unique = `sum(CASE WHEN ${isConverted} THEN 1 ELSE 0 END)`;
  const sum = (name: string) => `sum(CASE WHEN ${isConverted} THEN c.${name}_${period} ELSE 0 END)`;
  return [
    `${sum("goals")} AS total_conversions_${period}`,
    `${unique} AS unique_conversions_${period}`,
    `${unique} * 1.0 / nullif(sum(v.is_in_${period}), 0) AS conversion_rate_${period}`,
    ...(hasRevenue ? [`${sum("revenue")} AS conversion_revenue_${period}`] : []),
  ];
}

/** SQL for visits with a `value`, and whether it is `estimated` (0 or 1). */
async function valuedVisits(store: EventSql, web: WebQuery, breakdown: Breakdown): Promise<string> {
  if (breakdown === "Country") {
    const visits = await visitSource(store, web, ["country", "timezone"]);
    return `SELECT e.*, coalesce(e.country, nullif(z.value, '')) AS value,
        CASE WHEN e.country IS NULL THEN 1 ELSE 0 END AS estimated
      FROM (${visits}) AS e LEFT JOIN ${zoneTable(store.dialect)} AS z ON z.name = e.timezone`;
  }
  const property = visitProperties[breakdowns[breakdown]!];
  const visits = await visitSource(store, web, property.fields);
  return `SELECT e.*, ${property.sql(store.dialect)} AS value, 0 AS estimated FROM (${visits}) AS e`;
}

/** Page views and their visitors by path; a page's bounce rate is that of the visits that start there. */
async function pagesSql(
  store: EventSql,
  web: WebQuery,
  { names, conversions }: Omit<Figures, "breakdown">,
): Promise<string> {
  const isPlain = conversions === undefined && web.visitFilters.length === 0;
  const pages = isPlain ? countedPages(store, web) : await pagesByVisitor(store, web, { names, conversions });
  const bounces = names.includes("bounce_rate") ? await bouncesSql(store, web) : undefined;
  const left = names.filter((name) => name in previousPageFigures);
  if (bounces === undefined && left.length === 0) return pages;
  const columns = names.flatMap((name) => {
    const table = name === "bounce_rate" ? "b" : left.includes(name) ? "l" : "p";
    return Object.values(periods).map((period) => `${table}.${name}_${period} AS ${name}_${period}`);
  });
  return `SELECT p.value AS value, p.estimated AS estimated, ${columns.join(", ")} FROM (${pages}) AS p
    ${bounces === undefined ? "" : `LEFT JOIN (${bounces}) AS b ON b.path = p.value`}
    ${left.length === 0 ? "" : `LEFT JOIN (${await previousPagesSql(store, web, left)}) AS l ON l.path = p.value`}`;
}

/** SQL for the figures of pages whose visitors are joined one by one. */
async function pagesByVisitor(
  store: EventSql,
  web: WebQuery,
  { names, conversions }: Omit<Figures, "breakdown">,
): Promise<string> {
  const source = await pageSource(store, web);
  return byValue(
    `SELECT e.path AS value, 0 AS estimated, e.period AS period, e.who AS who, e.views AS views
     FROM (${source}) AS e WHERE e.path IS NOT NULL`,
    { names: conversions === undefined ? ["visitors", "views"] : names, conversions },
  );
}

/**
 * SQL for visitors and views of pages. Visitors are numbered per distinct ID first: there are far fewer than page views,
 * and counting distinct numbers takes a third of the time of grouping by person and path.
 */
function countedPages(store: EventSql, web: WebQuery): string {
  const { projectId } = web.request;
  const ids = `SELECT DISTINCT ${projectId} AS project_id, e.distinct_id AS distinct_id FROM events e
    WHERE ${inRanges(store, web).where} AND ${isView(store, web)}`;
  const visitors = `SELECT i.distinct_id AS distinct_id, dense_rank() OVER (ORDER BY i.who) AS visitor
    FROM (${withOwners(store, web, ids)}) AS i`;
  // Per period first: one distinct count of each row instead of one for each period.
  const counts = `SELECT e.path AS path, e.period AS period, count(DISTINCT v.visitor) AS visitors, sum(e.views) AS views
    FROM (${allPages(store, web)}) AS e JOIN (${visitors}) AS v ON v.distinct_id = e.distinct_id
    WHERE e.path IS NOT NULL GROUP BY e.path, e.period`;
  // Rows are read by position: figure by figure, each for both periods.
  const columns = ["visitors", "views"].flatMap((name) =>
    Object.values(periods).map(
      (period) => `sum(CASE WHEN ${inPeriod(period)} THEN e.${name} ELSE 0 END) AS ${name}_${period}`,
    ),
  );
  return `SELECT e.path AS value, 0 AS estimated, ${columns.join(", ")} FROM (${counts}) AS e GROUP BY e.path`;
}

/** SQL for means over the times that a page was left, by path. */
async function previousPagesSql(store: EventSql, web: WebQuery, names: readonly string[]): Promise<string> {
  const source = await previousPageSource(store, web);
  const means = names.flatMap((name) =>
    Object.values(periods).map(
      (period) =>
        `avg(CASE WHEN ${inPeriod(period)} THEN ${previousPageFigures[name]} END) AS ${name}_${period}`,
    ),
  );
  return `SELECT e.path AS path, ${means.join(", ")} FROM (${source}) AS e WHERE e.path IS NOT NULL GROUP BY e.path`;
}

/** SQL for the bounce rates of the visits that start at a path. */
async function bouncesSql(store: EventSql, web: WebQuery): Promise<string> {
  const visits = await visitSource(store, web, ["entry_path"]);
  const rates = Object.values(periods).map(
    (period) => `${figures.bounceRate(inPeriod(period))} AS bounce_rate_${period}`,
  );
  return `SELECT e.entry_path AS path, ${rates.join(", ")} FROM (${visits}) AS e GROUP BY e.entry_path`;
}

interface Order {
  by: string;
  direction: "ASC" | "DESC";
}

/** @throws {UnknownQueryError} */
function orderIn({ orderBy }: JsonObject, names: readonly string[]): Order {
  if (orderBy === undefined || orderBy === null) return { by: "visitors", direction: "DESC" };
  const [field, direction = "DESC"] = Array.isArray(orderBy) ? orderBy : [];
  const by = typeof field === "string" && Object.hasOwn(orders, field) ? orders[field as "Views"] : undefined;
  if (by !== undefined && names.includes(by) && (direction === "ASC" || direction === "DESC"))
    return { by, direction };
  const valid = Object.entries(orders).flatMap(([name, column]) => (names.includes(column) ? [name] : []));
  throw new UnknownQueryError(
    `The orderBy ${JSON.stringify(orderBy)} is not valid: expected [field, "ASC" or "DESC"], with the field ${valid.join(" or ")}.`,
  );
}

function orderSql({ by, direction }: Order, names: readonly string[]): string {
  const others = names.filter((name) => name !== by && !averages.includes(name));
  const columns = [by, ...others].flatMap((name) => [`f.${name}_0`, `f.${name}_1`]);
  return [...columns.map((column) => `${column} ${direction} NULLS LAST`), "f.value ASC NULLS LAST"].join(
    ", ",
  );
}

/** @throws {UnknownQueryError} */
function breakdownIn({ breakdownBy }: JsonObject): Breakdown {
  const found = breakdownNames.find((name) => name === breakdownBy);
  if (found !== undefined) return found;
  throw new UnknownQueryError(
    `The breakdownBy ${JSON.stringify(breakdownBy ?? null)} is not supported. Use ${breakdownNames.join(", ")}.`,
  );
}

/** @throws {UnknownQueryError} */
function pageIn(query: JsonObject): { limit: number; offset: number } {
  const limit = query.limit ?? limitDefault;
  const offset = query.offset ?? 0;
  const isWithin = (value: unknown, min: number, max: number): value is number =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
  if (!isWithin(limit, 1, webRowsMax))
    throw new UnknownQueryError(`limit must be an integer from 1 to ${webRowsMax}.`);
  if (!isWithin(offset, 0, webOffsetMax))
    throw new UnknownQueryError(`offset must be an integer from 0 to ${webOffsetMax}.`);
  return { limit, offset };
}

/** Sizes are pairs of numbers, as in PostHog's responses. */
function shownValue(breakdown: Breakdown, value: unknown): string | number[] | null {
  if (value === null || value === undefined) return null;
  return breakdown === "Viewport" ? String(value).split("x").map(Number) : String(value);
}

/** SQL for rows with `period`, `path`, `who` and `views`. @throws {UnknownQueryError} names an unsupported filter */
async function pageSource(store: EventSql, query: WebQuery): Promise<string> {
  const pages = query.visitFilters.length === 0 ? allPages(store, query) : pagesOfVisits(store, query);
  return withOwners(store, query, pages);
}

/** Every page view belongs to a visit, so visits need not be known. */
function allPages(store: EventSql, query: WebQuery): string {
  const { request, eventFilters } = query;
  const persons = eventFilters.some(isAboutPerson) ? store.dialect.personOfEvent(request.projectId) : "";
  const conditions = [isView(store, query), ...eventFilters.map((filter) => webFilterSql(store, filter))];
  // Not grouped: callers group by visitor, which is faster than by the strings here.
  return inRanges(store, query)
    .parts.map(
      ({
        where,
        period,
      }) => `SELECT ${request.projectId} AS project_id, ${period} AS period, ${pathSql(store)} AS path,
        e.distinct_id AS distinct_id, 1 AS views FROM events e ${persons} WHERE ${where} AND ${conditions.join(" AND ")}`,
    )
    .join(" UNION ALL ");
}

/** The pages of visits that pass the filters, with the visitor of the visit. */
function pagesOfVisits(store: EventSql, query: WebQuery): string {
  const { request, visitFilters } = query;
  const columns = roleColumns(store, [
    ...new Set(visitFilters.flatMap((filter) => propertyOfFilter(filter).fields)),
  ]);
  const path = { name: "path", value: pathSql(store) };
  const visits = `SELECT h.period AS period, h.visit AS visit, ${visitAggregates(store, columns)}
    FROM (${keyedHits(store, query, columns)}) AS h GROUP BY h.period, h.visit`;
  const conditions = visitFilters.map((filter) => visitFilterSql(store, filter));
  return `SELECT ${request.projectId} AS project_id, h.period AS period, h.path AS path, e.distinct_id AS distinct_id,
      sum(h.is_view * h.is_selected) AS views
    FROM (${keyedHits(store, query, [path])}) AS h JOIN (${visits}) AS e ON e.period = h.period AND e.visit = h.visit
    WHERE ${conditions.join(" AND ")} AND h.is_view = 1 AND h.is_selected = 1
    GROUP BY h.period, h.path, e.distinct_id`;
}

/** What posthog-js sends when a page is left, with the next page view or `$pageleave`. */
const readings = {
  /** Seconds. */
  seconds: "$prev_pageview_duration",
  /** From 0 to 1. */
  depth: "$prev_pageview_max_content_percentage",
} as const;

/**
 * SQL for rows with `period`, the `path` of a page that was left, `seconds` on it and the `depth` of scrolling, both
 * null if not sent. @throws {UnknownQueryError} names an unsupported filter
 */
async function previousPageSource(store: EventSql, query: WebQuery): Promise<string> {
  const { dialect, eventProperties } = store;
  const { request, visitFilters } = query;
  // The event itself may be of another page.
  const eventFilters = query.eventFilters.map((filter) =>
    filter.key === "$pathname" && (filter.type ?? "event") === "event"
      ? { ...filter, key: previousPathName }
      : filter,
  );
  const columns = [
    { name: "path", value: previousPathSql(store) },
    ...Object.entries(readings).map(([name, property]) => ({
      name,
      value: dialect.number(looseStringAt(dialect, eventProperties, property)),
    })),
  ];
  const isLeaving = `e.event IN (${["$pageview", "$screen", "$pageleave"].map(dialect.text).join(", ")})`;
  if (visitFilters.length === 0) {
    const persons = eventFilters.some(isAboutPerson) ? dialect.personOfEvent(request.projectId) : "";
    const conditions = [isLeaving, ...eventFilters.map((filter) => webFilterSql(store, filter))];
    return inRanges(store, query)
      .parts.map(
        ({
          where,
          period,
        }) => `SELECT ${period} AS period, ${columns.map(({ name, value }) => `${value} AS ${name}`).join(", ")}
          FROM events e ${persons} WHERE ${where} AND ${conditions.join(" AND ")}`,
      )
      .join(" UNION ALL ");
  }
  const visitColumns = roleColumns(store, [
    ...new Set(visitFilters.flatMap((filter) => propertyOfFilter(filter).fields)),
  ]);
  const visits = `SELECT h.period AS period, h.visit AS visit, ${visitAggregates(store, visitColumns)}
    FROM (${keyedHits(store, query, visitColumns)}) AS h GROUP BY h.period, h.visit`;
  const leaving = [...columns, { name: "is_leaving", value: `CASE WHEN ${isLeaving} THEN 1 ELSE 0 END` }];
  const conditions = visitFilters.map((filter) => visitFilterSql(store, filter));
  return `SELECT h.period AS period, ${columns.map(({ name }) => `h.${name} AS ${name}`).join(", ")}
    FROM (${keyedHits(store, { ...query, eventFilters }, leaving)}) AS h JOIN (${visits}) AS e ON e.period = h.period AND e.visit = h.visit
    WHERE ${conditions.join(" AND ")} AND h.is_leaving = 1 AND h.is_selected = 1`;
}
