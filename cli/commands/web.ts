import { type Static, Type } from "@sinclair/typebox";
import { Command, InvalidArgumentError, Option } from "commander";
import { webRowsMax } from "../../src/events/web/stats-table.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";
import { nullable, strictObject } from "../../src/lib/schema.ts";
import { engineSessionSettings } from "../engine-session.ts";
import { type Queries, withQueries } from "../operations/queries.ts";
import { type CallOptions, withServer } from "../operations/server.ts";
import { projectOption } from "../options.ts";
import { positiveInteger, print, printJson, printTable, run, withJson } from "../output.ts";
import { withSettings } from "../settings.ts";

/** Lists by their names in `--by`: title, and `breakdownBy` of the query. */
const lists = {
  channels: ["Channels", "InitialChannelType"],
  referrers: ["Referrers", "InitialReferringDomain"],
  campaigns: ["Campaigns", "InitialUTMCampaign"],
  pages: ["Pages", "Page"],
  "entry-pages": ["Entry pages", "InitialPage"],
  "exit-pages": ["Exit pages", "ExitPage"],
  countries: ["Countries", "Country"],
  languages: ["Languages", "Language"],
  browsers: ["Browsers", "Browser"],
  systems: ["Systems", "OS"],
  devices: ["Devices", "DeviceType"],
  "screen-sizes": ["Screen sizes", "Viewport"],
} as const;
type List = keyof typeof lists;
const listNames = Object.keys(lists) as List[];
/** Shown without `--by`. */
const defaultLists: List[] = ["channels", "referrers", "pages", "countries", "browsers"];

const Figure = strictObject({ value: nullable(Type.Number()), previous: nullable(Type.Number()) });
const Row = strictObject({ value: Type.String(), visitors: Figure, views: Figure, bounce_rate: Figure });
const Goal = strictObject({ name: Type.String(), visitors: Figure, conversions: Figure, rate: Figure });

const WebReport = strictObject({
  /** First and last second, in the project's time zone. */
  from: Type.String(),
  to: Type.String(),
  /** Visitors with an event in the last five minutes. */
  online: Type.Integer(),
  figures: strictObject({
    visitors: Figure,
    visits: Figure,
    views: Figure,
    views_per_visit: Figure,
    /** 0 to 1. */
    bounce_rate: Figure,
    /** Seconds. */
    visit_duration: Figure,
  }),
  /** Rows by list. */
  lists: Type.Record(Type.String(), Type.Array(Row)),
  goals: Type.Array(Goal),
});
type WebReport = Static<typeof WebReport>;
type Figure = Static<typeof Figure>;

interface WebOptions extends CallOptions {
  range: JsonObject;
  compare?: keyof typeof comparisons;
  by?: List;
  limit: number;
}

/** `compareFilter` of the query. */
const comparisons: Record<"previous" | "year", JsonObject> = {
  previous: { compare: true },
  // Weekdays match.
  year: { compare: true, compare_to: "-52w" },
};

export const web = withJson(withSettings(new Command("web"), engineSessionSettings), WebReport)
  .description("Show web analytics: visitors, visits, page views, sources, pages and goals.")
  .addOption(projectOption)
  .addOption(
    new Option(
      "--range <range>",
      "the last days (30d), hours, weeks, months or years, or two dates (2026-11-01..2026-11-30)",
    )
      .argParser(parseRange)
      .default(parseRange("30d"), "30d"),
  )
  .addOption(
    new Option(
      "--compare <period>",
      "compare with the previous period, or the same weeks a year ago",
    ).choices(["previous", "year"]),
  )
  .addOption(new Option("--by <list>", "show only this list").choices(listNames))
  .option("--limit <rows>", `maximum number of rows per list, at most ${webRowsMax}`, positiveInteger, 5)
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep web --range 30d\n  flagkeep web --range 7d --compare previous --by pages --limit 50\n" +
      "  flagkeep web --range 2026-11-01..2026-11-30 --json\n  flagkeep web --url https://flags.example.com",
  )
  .action(
    run(async (options: WebOptions) => {
      const report = await withQueries(options, ({ web: ask }) => readReport(options, ask));
      if (options.json) return printJson(report);
      printReport(report, options);
    }),
  );

withServer(web);

type NamedFigure = { key: string } & Figure;
type TableRow = [value: Json, ...figures: Pair[]];
type Pair = [value: number | null, previous: number | null];

async function readReport(
  { range, compare, by, limit }: WebOptions,
  ask: Queries["web"],
): Promise<WebReport> {
  const common = {
    dateRange: range,
    ...(compare === undefined ? {} : { compareFilter: comparisons[compare] }),
  };
  const overview = await ask<NamedFigure>({ kind: "WebOverviewQuery", ...common });
  const [visitors, views, visits, duration, bounces] = overview.results.map(({ value, previous }) => ({
    value,
    previous,
  })) as [Figure, Figure, Figure, Figure, Figure];
  const online = await ask<NamedFigure>({ kind: "WebOnlineQuery" });
  const rows: WebReport["lists"] = {};
  for (const name of by === undefined ? defaultLists : [by]) {
    const breakdown = { breakdownBy: lists[name][1], includeBounceRate: true };
    const rowLimit = Math.min(limit, webRowsMax);
    const answer = await ask<TableRow>({
      kind: "WebStatsTableQuery",
      ...breakdown,
      limit: rowLimit,
      ...common,
    });
    rows[name] = answer.results.map(([value, ...figures]) => ({
      value: shownValue(value),
      visitors: toFigure(figures[0]!),
      views: toFigure(figures[1]!),
      bounce_rate: toFigure(figures[2]!),
    }));
  }
  const goals = by === undefined ? (await ask<TableRow>({ kind: "WebGoalsQuery", ...common })).results : [];
  return {
    from: String(overview.dateFrom),
    to: String(overview.dateTo),
    online: Number(online.results[0]!.value),
    figures: {
      visitors,
      visits,
      views,
      views_per_visit: forBothPeriods((member) => quotient(views[member], visits[member])),
      bounce_rate: forBothPeriods((member) => quotient(bounces[member], 100)),
      visit_duration: duration,
    },
    lists: rows,
    goals: goals.map(([name, visitors, conversions, rate]) => ({
      name: String(name),
      visitors: toFigure(visitors!),
      conversions: toFigure(conversions!),
      rate: toFigure(rate!),
    })),
  };
}

const toFigure = ([value, previous]: Pair): Figure => ({ value, previous });

const forBothPeriods = (getValue: (member: "value" | "previous") => number | null): Figure => ({
  value: getValue("value"),
  previous: getValue("previous"),
});

const quotient = (part: number | null, whole: number | null) =>
  part === null || whole === null || whole === 0 ? null : part / whole;

function shownValue(value: unknown): string {
  if (value === null) return "(none)";
  return Array.isArray(value) ? value.join("×") : String(value);
}

function printReport({ from, to, online, figures, lists: shown, goals }: WebReport, { compare }: WebOptions) {
  print(`${from.slice(0, 10)} to ${to.slice(0, 10)}, ${online} online`);
  const withPrevious = (columns: string[]) => [...columns, ...(compare === undefined ? [] : ["previous"])];
  const cells = ({ value, previous }: Figure, format: (value: number | null) => string) =>
    compare === undefined ? [format(value)] : [format(value), format(previous)];
  printTable(withPrevious(["figure", "value"]), [
    ["visitors", ...cells(figures.visitors, count)],
    ["visits", ...cells(figures.visits, count)],
    ["page views", ...cells(figures.views, count)],
    ["views per visit", ...cells(figures.views_per_visit, decimal)],
    ["bounce rate", ...cells(figures.bounce_rate, percent)],
    ["visit duration", ...cells(figures.visit_duration, duration)],
  ]);
  for (const [name, rows] of Object.entries(shown)) {
    print("");
    printTable(
      [...withPrevious([lists[name as List][0], "visitors"]), "views", "bounce rate"],
      rows.map((row) => [
        row.value,
        ...cells(row.visitors, count),
        count(row.views.value),
        percent(row.bounce_rate.value),
      ]),
    );
  }
  if (goals.length === 0) return;
  print("");
  printTable(
    [...withPrevious(["Goals", "visitors"]), "conversions", "rate"],
    goals.map((goal) => [
      goal.name,
      ...cells(goal.visitors, count),
      count(goal.conversions.value),
      percent(goal.rate.value),
    ]),
  );
}

const absent = "-";
const count = (value: number | null) => (value === null ? absent : value.toLocaleString("en-US"));
const decimal = (value: number | null) => (value === null ? absent : value.toFixed(1));
const percent = (value: number | null) => (value === null ? absent : `${Math.round(value * 100)}%`);

function duration(seconds: number | null): string {
  if (seconds === null) return absent;
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3_600);
  const minutes = Math.floor((whole % 3_600) / 60);
  return hours > 0 ? `${hours}h ${minutes}m` : minutes > 0 ? `${minutes}m ${whole % 60}s` : `${whole}s`;
}

/** `dateRange` of the query. @throws {InvalidArgumentError} */
function parseRange(text: string): JsonObject {
  if (/^[1-9]\d{0,3}[hdwmqy]$/.test(text)) return { date_from: `-${text}` };
  const [, from, to] = /^(\d{4}-\d\d-\d\d)\.\.(\d{4}-\d\d-\d\d)$/.exec(text) ?? [];
  const isDay = (day: string | undefined): day is string => {
    const date = new Date(`${day}T00:00:00Z`);
    return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day!);
  };
  if (isDay(from) && isDay(to) && from <= to) return { date_from: from, date_to: to };
  throw new InvalidArgumentError("Expected a period such as 30d or 24h, or 2026-11-01..2026-11-30.");
}
