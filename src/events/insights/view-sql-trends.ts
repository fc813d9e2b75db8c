/** Trends as SQL over the views, and the persons behind one of their numbers. */

import { viewSql } from "../duckdb/sql-dialect.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { quoted } from "../sql-text.ts";
import { getActiveDays, isActiveUsers } from "./active-days.ts";
import { noValue } from "./breakdown-values.ts";
import { formulasIn } from "./formula.ts";
import {
  type Figure,
  getEvents,
  identifier,
  localTime,
  moment,
  startOf,
  type ViewQuery,
  type ViewSeries,
  who,
} from "./view-sql-query.ts";

const { dialect } = viewSql;
const getLetter = (position: number) => String.fromCharCode("A".charCodeAt(0) + position);

/** One row per period, series and breakdown value. */
export function trendSql(view: ViewQuery): string {
  const { request, query, series, interval, breakdowns } = view;
  if (series.length === 0) throw new UnknownQueryError("A trend requires 1 to 26 series.");
  const formulas = formulasIn(query, series.length);
  if (formulas.length > 1) throw new UnknownQueryError("Several formulas cannot be printed as SQL.");
  const [formula] = formulas;
  const selects = series.map((node, position) => {
    const event = formula ? "" : node.event;
    const name =
      series.length > 1 || formula ? [`${quoted(`${getLetter(position)} ${event}`.trim())} AS series`] : [];
    const days = getActiveDays(node.math, interval);
    if (days !== undefined) return activeSql(view, node, { days, name });
    const columns = [
      `${startOf(interval, localTime(request), request)} AS period`,
      ...name,
      ...breakdowns.map(({ name: property, sql }) => `${sql} AS ${identifier(property)}`),
      `${measure(node)} AS value`,
    ];
    return `SELECT ${columns.join(",\n  ")}\n${getEvents(view, node)}\nGROUP BY ALL`;
  });
  const counted = selects.join("\nUNION ALL\n");
  return `${formula ? formulaSql(view, formula.text, counted) : counted}\nORDER BY ALL`;
}

/** Without rows for periods without events. */
function formulaSql({ series, breakdowns }: ViewQuery, formula: string, counted: string): string {
  const shown = ["period", ...breakdowns.map(({ name }) => identifier(name))].join(", ");
  const letters = series.map((_, position) => {
    const letter = getLetter(position);
    return `coalesce(sum(value) FILTER (WHERE series = '${letter}'), 0)::DOUBLE AS "${letter}"`;
  });
  const expression = formula.toUpperCase().replaceAll(/[A-Z]/g, (letter) => `"${letter}"`);
  return `WITH counted AS (
${counted}
)
SELECT ${shown}, if(isfinite(value), value, 0) AS value
FROM (SELECT *, coalesce(${expression}, 0) AS value FROM (
  SELECT ${[shown, ...letters].join(",\n    ")}
  FROM counted GROUP BY ALL
))`;
}

/** Persons active in the days up to the end of each period. */
function activeSql(
  view: ViewQuery,
  series: ViewSeries,
  { days, name }: { days: number; name: readonly string[] },
): string {
  const { request, interval, breakdowns, bounds } = view;
  const { from, until } = bounds;
  const unit = interval === "hour" ? "hour" : "day";
  const local = localTime(request);
  const values = breakdowns.map(({ name: property, sql }) => `${sql} AS ${identifier(property)}`);
  const shown = breakdowns.map(({ name: property }) => identifier(property));
  const range = [
    ...(from === undefined ? [] : [`${local} >= date_trunc('${unit}', ${from}) - INTERVAL ${days} DAY`]),
    `${local} < ${until}`,
  ];
  const period = startOf(interval, "moment", request);
  const ends = `moment = least(${period} + INTERVAL 1 ${interval}, ${until}) - INTERVAL 1 ${unit}`;
  const started = from === undefined ? [] : [`moment >= date_trunc('${unit}', ${from})`];
  return `SELECT ${[`${period} AS period`, ...name, ...shown, "count(DISTINCT who) AS value"].join(",\n  ")}
FROM (
  SELECT ${["who", ...shown, `unnest(generate_series(active, active + INTERVAL ${days} DAY - INTERVAL 1 ${unit}, INTERVAL 1 ${unit})) AS moment`].join(", ")}
  FROM (
    SELECT DISTINCT ${[`${who} AS who`, ...values, `date_trunc('${unit}', ${local}) AS active`].join(", ")}
    ${getEvents(view, series, { range })}
  )
)
WHERE ${[...started, ends].join(" AND ")}
GROUP BY ALL`;
}

function measure({ math, number }: ViewSeries): string {
  if (math === "total") return "count(*)";
  if (math === "dau" || isActiveUsers(math)) return `count(DISTINCT ${who})`;
  if (math === "unique_session") return `count(DISTINCT ${dialect.sentText("e.properties", "$session_id")})`;
  const share = /^p(\d+)$/.exec(math)?.[1];
  return share === undefined ? `${math}(${number})` : `quantile_cont(${number}, 0.${share})`;
}

/** @param columns of each person */
export function trendPersonsSql(view: ViewQuery, figure: Figure, columns: string): string {
  const { request, interval, breakdowns } = view;
  const series = view.series[figure.series]!;
  const values = figure.breakdown ?? [];
  const days = getActiveDays(series.math, interval);
  const more = [
    ...(figure.day === undefined || days !== undefined
      ? []
      : [`${startOf(interval, localTime(request), request)} = ${moment(figure.day)}`]),
    ...(figure.breakdown === undefined
      ? []
      : breakdowns.map(({ sql }, index) =>
          values[index] === noValue ? `${sql} IS NULL` : `${sql} = ${quoted(String(values[index]))}`,
        )),
  ];
  return `SELECT ${who} AS who, ${columns}
${getEvents(view, series, {
  more,
  withPersons: true,
  ...(days === undefined ? {} : { range: activeConditions(view, figure, days) }),
})}
GROUP BY who ORDER BY times DESC, who`;
}

/** Conditions on the times of the events behind a number of active persons. */
function activeConditions({ request, interval, bounds }: ViewQuery, { day }: Figure, days: number): string[] {
  const { until } = bounds;
  const local = localTime(request);
  const end = day === undefined ? until : `least(${moment(day)} + INTERVAL 1 ${interval}, ${until})`;
  return [`${local} >= ${end} - INTERVAL ${days} DAY`, `${local} < ${end}`];
}
