/** Queries of Overview, and their filters in the address. */

import { request } from "../lib/api.ts";
import { countryName } from "../lib/format.ts";
import { inProject } from "../lib/session.ts";
import { messages } from "../messages/index.ts";

const w = messages.overview;

/** What a list can be filtered by, and the condition of a value. */
const facets = {
  channel: { type: "session", key: "$channel_type" },
  referrer: { type: "session", key: "$entry_referring_domain" },
  campaign: { type: "session", key: "$entry_utm_campaign" },
  page: { type: "event", key: "$pathname" },
  entry: { type: "session", key: "$entry_pathname" },
  exit: { type: "session", key: "$end_pathname" },
  country: { type: "event", key: "$geoip_country_code" },
  language: { type: "event", key: "$browser_language" },
  browser: { type: "event", key: "$browser" },
  system: { type: "event", key: "$os" },
  device: { type: "event", key: "$device_type" },
  site: { type: "event", key: "$host" },
} as const;
export type Facet = keyof typeof facets;
export const facetNames = Object.keys(facets) as Facet[];

type ListName = keyof typeof w.lists;
/** Lists with their `breakdownBy` and the facet that a row filters by. */
export const lists: Record<ListName, { breakdownBy: string; facet?: Facet }> = {
  channels: { breakdownBy: "InitialChannelType", facet: "channel" },
  referrers: { breakdownBy: "InitialReferringDomain", facet: "referrer" },
  campaigns: { breakdownBy: "InitialUTMCampaign", facet: "campaign" },
  pages: { breakdownBy: "Page", facet: "page" },
  entryPages: { breakdownBy: "InitialPage", facet: "entry" },
  exitPages: { breakdownBy: "ExitPage", facet: "exit" },
  countries: { breakdownBy: "Country", facet: "country" },
  languages: { breakdownBy: "Language", facet: "language" },
  browsers: { breakdownBy: "Browser", facet: "browser" },
  systems: { breakdownBy: "OS", facet: "system" },
  devices: { breakdownBy: "DeviceType", facet: "device" },
  screens: { breakdownBy: "Viewport" },
};
export type { ListName };

/** Panels of lists, as tabs. */
export const panels: readonly (readonly [keyof typeof w.panels, readonly ListName[]])[] = [
  ["sources", ["channels", "referrers", "campaigns"]],
  ["pages", ["pages", "entryPages", "exitPages"]],
  ["places", ["countries", "languages"]],
  ["clients", ["browsers", "systems", "devices", "screens"]],
];

/** What the page shows. */
export interface View {
  range: string;
  comparison: string;
  filters: readonly (readonly [Facet, string])[];
  /** Name of the goal whose conversions the lists show. */
  goal: string | undefined;
}

const defaultRange = "-30d";
const defaultComparison = "previous";

/** The view of an address. */
export function getView(query: Record<string, string>): View {
  const { range = defaultRange, compare = defaultComparison } = query;
  return {
    range: Object.hasOwn(w.ranges, range) ? range : defaultRange,
    comparison: Object.hasOwn(w.comparisons, compare) ? compare : defaultComparison,
    goal: query.goal || undefined,
    filters: facetNames.flatMap((facet) => {
      const value = query[facet];
      return value === undefined || value === "" ? [] : [[facet, value] as const];
    }),
  };
}

/** Members that a share link of a view stores. */
export const sharedMembers = (view: View) => ({
  ...common(view),
  ...(view.goal === undefined ? {} : { conversionGoal: { goalName: view.goal } }),
});

/** Members that all queries of a view share. */
function common({ range, comparison, filters }: View) {
  const offset = comparison === "year" ? { compare_to: "-52w" } : {};
  return {
    dateRange: { date_from: range },
    ...(comparison === "none" ? {} : { compareFilter: { compare: true, ...offset } }),
    properties: filters.map(([facet, value]) =>
      facet === "language"
        ? { ...facets[facet], value: `^${value}(-|$)`, operator: "regex" }
        : { ...facets[facet], value, operator: "exact" },
    ),
  };
}

/** Headings of the figures of a list. */
export const listColumns = (hasGoal: boolean): readonly [string, string, string] =>
  hasGoal ? [w.visitors, w.conversions, w.rate] : [w.visitors, w.views, w.bounceRate];

/** One bucket per hour on short ranges, per week on long ones. */
const getInterval = ({ range }: View) =>
  range === "0d" || range === "-24h" ? "hour" : range === "-12m" ? "week" : "day";

const ask = <Answer>(query: object, signal: AbortSignal) =>
  request<Answer>(inProject("query/"), { method: "POST", body: { query }, signal });

type Pair = readonly [now: number | null, before: number | null];
export type FigureName = keyof typeof w.figures;
export const figureNames = Object.keys(w.figures) as FigureName[];
export type Figures = Record<FigureName, Pair>;

const over = (part: number | null, whole: number | null) =>
  part === null || whole === null || whole === 0 ? null : part / whole;

/** Results of `WebOverviewQuery`. */
export interface OverviewAnswer {
  results: { key: string; value: number | null; previous: number | null }[];
}

export const readFigures = (view: View, signal: AbortSignal): Promise<Figures> =>
  ask<OverviewAnswer>({ kind: "WebOverviewQuery", ...common(view) }, signal).then(getFigures);

export function getFigures({ results }: OverviewAnswer): Figures {
  const pair = (key: string): Pair => {
    const found = results.find((result) => result.key === key);
    return [found?.value ?? null, found?.previous ?? null];
  };
  const views = pair("views");
  const visits = pair("sessions");
  const bounces = pair("bounce rate");
  return {
    visitors: pair("visitors"),
    visits,
    views,
    perVisit: [over(views[0], visits[0]), over(views[1], visits[1])],
    bounce: [over(bounces[0], 100), over(bounces[1], 100)],
    duration: pair("session duration"),
  };
}

interface Bucket {
  bucket: string;
  metrics: Record<"UniqueUsers" | "PageViews" | "Sessions" | "Bounces" | "SessionDuration", number>;
}
export interface Course {
  results: Bucket[];
  previous?: Bucket[];
}

export const readCourse = (view: View, signal: AbortSignal) =>
  ask<Course>({ kind: "WebTrendsQuery", interval: getInterval(view), ...common(view) }, signal);

/** The value of a figure in a bucket. */
export function figureIn({ metrics }: Bucket, name: FigureName): number {
  const { UniqueUsers, PageViews, Sessions, Bounces, SessionDuration } = metrics;
  const values: Record<FigureName, number> = {
    visitors: UniqueUsers,
    visits: Sessions,
    views: PageViews,
    duration: SessionDuration,
    perVisit: over(PageViews, Sessions) ?? 0,
    bounce: over(Bounces, Sessions) ?? 0,
  };
  return values[name];
}

export interface ListRow {
  value: string | null;
  label: string;
  visitors: Pair;
  /** Page views; with a goal visitors who reached it. */
  amount: Pair;
  /** The bounce rate; with a goal the conversion rate. */
  rate: Pair;
}
export interface List {
  rows: ListRow[];
  isEstimated: boolean;
  /** The figures are those of a goal. */
  hasGoal: boolean;
}

export async function readList(
  view: View,
  name: ListName,
  limit: number,
  signal: AbortSignal,
): Promise<List> {
  const { breakdownBy } = lists[name];
  const answer = await ask<ListAnswer>(
    {
      kind: "WebStatsTableQuery",
      breakdownBy,
      includeBounceRate: true,
      ...(view.goal === undefined ? {} : { conversionGoal: { goalName: view.goal } }),
      limit,
      ...common(view),
    },
    signal,
  );
  return listOf(name, answer);
}

/** Results of `WebStatsTableQuery`. */
export interface ListAnswer {
  columns: string[];
  results: [string | number[] | null, ...Pair[]][];
  isEstimated?: boolean;
}

export function listOf(name: ListName, { columns, results, isEstimated = false }: ListAnswer): List {
  const hasGoal = columns.includes("context.columns.conversion_rate");
  return {
    isEstimated,
    hasGoal,
    rows: results.map(([sent, visitors, ...others]) => {
      const value = Array.isArray(sent) ? sent.join("×") : sent;
      const label = getLabel(lists[name].facet, value);
      // With a goal: total conversions, unique ones, and their rate.
      const [amount, rate] = (hasGoal ? others.slice(1) : others) as [Pair, Pair];
      return { value, label, visitors: visitors!, amount, rate };
    }),
  };
}

const languageNames = new Intl.DisplayNames("en", { type: "language", fallback: "code" });

/** The name of a value, as shown. */
export function getLabel(facet: Facet | undefined, value: string | null): string {
  if (value === null) return w.unnamed;
  if (facet === "referrer" && value === "$direct") return w.direct;
  if (facet === "country") return countryName(value);
  try {
    if (facet === "language") return languageNames.of(value) ?? value;
  } catch {
    // Clients may send anything.
  }
  return value;
}

export interface GoalRow {
  name: string;
  visitors: Pair;
  conversions: Pair;
  rate: Pair;
}

export async function readGoals(view: View, signal: AbortSignal): Promise<GoalRow[]> {
  const { results } = await ask<{ results: [string, Pair, Pair, Pair][] }>(
    { kind: "WebGoalsQuery", ...common(view) },
    signal,
  );
  return results.map(([name, visitors, conversions, rate]) => ({ name, visitors, conversions, rate }));
}

export async function readOnline(signal: AbortSignal): Promise<number> {
  const { results } = await ask<{ results: { value: number }[] }>({ kind: "WebOnlineQuery" }, signal);
  return results[0]?.value ?? 0;
}

/** A goal in the project's settings. */
export interface Goal {
  name: string;
  event: string | null;
  path: string | null;
}

export const readGoalSettings = (signal: AbortSignal) =>
  request<{ web_goals: Goal[] }>(inProject(""), { signal }).then(({ web_goals }) => web_goals);

export const saveGoals = (goals: readonly Goal[]) =>
  request(inProject(""), { method: "PATCH", body: { web_goals: goals } });

/** Difference to the previous period, in percent or for rates in points; undefined if unknown. */
export function getChange(
  name: FigureName,
  [now, before]: Pair,
): { text: string; isBetter: boolean | null } | undefined {
  if (now === null || before === null) return undefined;
  const isRate = name === "bounce";
  if (!isRate && before === 0) return undefined;
  const amount = Math.round(isRate ? 100 * (now - before) : 100 * (now / before - 1));
  const sign = amount > 0 ? "+" : amount < 0 ? "−" : "";
  const shown = isRate ? w.points(Math.abs(amount)) : `${Math.abs(amount)}%`;
  return {
    text: w.change(sign, shown),
    isBetter: amount === 0 ? null : amount > 0 !== isRate,
  };
}

/** Whether the project has ever received a page view. */
export const readHasPageViews = (signal: AbortSignal) =>
  request<{ results: { name: string }[] }>(inProject("event_definitions/?search=%24pageview"), {
    signal,
  }).then(({ results }) => results.some(({ name }) => name === "$pageview"));
