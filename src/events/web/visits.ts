/**
 * Visits: the events of one `$session_id`; events without one are split per distinct ID at gaps over 30 minutes and
 * after 24 hours. Only visits with a page view count. All web analytics queries read one relation of visits.
 */

import { dayMs } from "../../lib/time.ts";
import { isAboutPerson } from "../event-filters.ts";
import { rangeSql } from "../insights/event-source.ts";
import type { Range } from "../insights/trend-range.ts";
import { type EventSql, stringAt } from "../sql-dialect.ts";
import { propertyOfFilter, visitFilterSql, webFilterSql } from "./filters.ts";
import { hasCampaign, type Role, roles, type VisitField, visitFields } from "./visit-fields.ts";
import type { WebQuery } from "./web-query.ts";

/** These neither create nor extend a visit. */
const uncountedEvents = ["$feature_flag_called", "$identify", "$groupidentify", "$set", "$create_alias"];
const gapMicros = 30 * 60_000_000;
const dayMicros = 86_400_000_000;
const bounceMicros = 10_000_000;
/** Events of the same time are ordered by the last bits of their arrival. */
const tieSteps = 1_024;
/** In longer ranges, times leave no bits for it. */
const tieSpanMs = 200 * 366 * dayMs;

/** Numbers of the ranges of a relation: the current one, and the one compared with. */
export const periods = { current: 0, previous: 1 } as const;

/**
 * SQL for visits `e`: `period`, `who`, the time of the first event, `micros` (duration), `bounced` (0 or 1), `views`, and
 * the given fields.
 * @throws {UnknownQueryError} names an unsupported filter
 */
export async function visitSource(
  store: EventSql,
  query: WebQuery,
  fields: readonly VisitField[],
): Promise<string> {
  const { visitFilters } = query;
  const read = new Set([...fields, ...visitFilters.flatMap((filter) => propertyOfFilter(filter).fields)]);
  const source = await withFields(store, query, [...read]);
  if (visitFilters.length === 0) return source;
  const conditions = visitFilters.map((filter) => visitFilterSql(store, filter));
  return `SELECT * FROM (${source}) AS e WHERE ${conditions.join(" AND ")}`;
}

async function withFields(store: EventSql, query: WebQuery, fields: readonly VisitField[]): Promise<string> {
  const { request, current, previous, eventFilters } = query;
  if (store.cachedTable === undefined || request.revision === undefined)
    return withOwners(store, query, groupedVisits(store, query, roleColumns(store, fields)));
  const { projectId, timezone, revision } = request;
  const key = JSON.stringify([
    projectId,
    timezone,
    request.web?.countsScreens === true,
    revision,
    eventFilters,
    current,
    previous ?? null,
  ]);
  // Rows of events instead of their values: a list then reads only its own properties.
  const rows = roles.map((role) => ({ name: rowColumn(role), role, value: rowId }));
  const columns = ["period", timeColumn(store), "micros", "bounced", "views", ...roles.map(rowColumn)];
  const visits = withOwners(store, query, groupedVisits(store, query, rows), columns);
  return withEvents(store, query, await store.cachedTable(key, visits), fields);
}

/** A value of one of a visit's events. */
export interface RoleColumn {
  name: string;
  role: Role;
  /** SQL over the event `e`. */
  value: string;
}

/** The columns of fields. */
export const roleColumns = (store: EventSql, fields: readonly VisitField[]): RoleColumn[] =>
  fields.map((name) => ({ name, role: visitFields[name].role, value: visitFields[name].sql(store) }));

/** `seq` is unique within a lane. */
const lane = "CASE WHEN e.historical THEN 1 ELSE 0 END";
/** Identifies an event within its project. */
const rowId = `(e.seq * 2 + ${lane})`;
const rowColumn = (role: Role) => `${role}_row`;

/** Adds the fields that cached visits read to them, from the event of each role. */
function withEvents(store: EventSql, query: WebQuery, table: string, fields: readonly VisitField[]): string {
  const ofRole = (role: Role) => fields.filter((name) => visitFields[name].role === role);
  const campaign = ofRole("campaign");
  const visits =
    campaign.length === 0
      ? table
      : `(${joined(store, query, { visits: table, role: "campaign", fields: campaign })} UNION ALL
        SELECT v.*, ${campaign.map((name) => `${store.dialect.nullText} AS ${name}`).join(", ")}
        FROM ${table} v WHERE v.${rowColumn("campaign")} IS NULL)`;
  return roles
    .filter((role) => role !== "campaign" && ofRole(role).length > 0)
    .reduce(
      (source, role) => joined(store, query, { visits: `(${source})`, role, fields: ofRole(role) }),
      `SELECT v.* FROM ${visits} v`,
    );
}

/**
 * SQL for visits that have an event of a role, with its values. They are computed after the join, for fewer rows. It
 * compares `seq` as it is stored: DuckDB then skips most events while scanning, but not by expressions or in outer joins.
 */
function joined(
  store: EventSql,
  query: WebQuery,
  { visits, role, fields }: { visits: string; role: Role; fields: readonly VisitField[] },
): string {
  const row = `v.${rowColumn(role)}`;
  const values = fields.map((name) => `${visitFields[name].sql(store)} AS ${name}`).join(", ");
  return `SELECT v.*, ${values} FROM ${visits} v JOIN events e ON e.seq = ${row} // 2 AND ${lane} + ${row} % 2 <> 1
    WHERE ${inRanges(store, query).all}`;
}

/** Owners are joined to visits, not to events: there are fewer. */
export function withOwners(
  { dialect }: EventSql,
  { request }: WebQuery,
  source: string,
  columns: readonly string[] = ["*"],
): string {
  const read = columns.map((name) => `e.${name}`).join(", ");
  return `SELECT ${read}, ${dialect.who} AS who FROM (${source}) AS e ${dialect.ownerOfEvent(request.projectId)}`;
}

/** The name of the column that `SqlDialect.time` reads. */
const timeColumn = ({ dialect }: EventSql): string => dialect.time("e").slice("e.".length);

/** SQL for visits with `project_id` and `distinct_id`, by which owners are joined. */
function groupedVisits(store: EventSql, query: WebQuery, columns: readonly RoleColumn[]): string {
  return `SELECT ${query.request.projectId} AS project_id, h.period AS period, ${visitAggregates(store, columns)}
    FROM (${keyedHits(store, query, columns)}) AS h GROUP BY h.period, h.visit HAVING sum(h.is_view * h.is_selected) > 0`;
}

/** SQL for the values of a visit, over its events `h`. */
export function visitAggregates(store: EventSql, columns: readonly RoleColumn[]): string {
  const { dialect } = store;
  const time = timeColumn(store);
  const order: Record<Role, string> = {
    first: "h.position",
    campaign: "CASE WHEN h.is_campaign = 1 THEN h.position END",
    entry: "CASE WHEN h.is_view = 1 THEN h.position END",
    exit: "CASE WHEN h.is_view = 1 THEN -h.position END",
  };
  const micros = "(max(h.at) - min(h.at))";
  return [
    `${dialect.valueAtLeast("h.distinct_id", "h.position")} AS distinct_id`,
    `min(h.${time}) AS ${time}`,
    `CASE WHEN ${micros} > ${dayMicros} THEN ${dayMicros} ELSE ${micros} END AS micros`,
    `CASE WHEN sum(h.is_view) = 1 AND ${micros} < ${bounceMicros} THEN 1 ELSE 0 END AS bounced`,
    "sum(h.is_view * h.is_selected)::BIGINT AS views",
    ...columns.map(({ name, role }) => `${dialect.valueAtLeast(`h.${name}`, order[role])} AS ${name}`),
  ].join(", ");
}

/**
 * SQL for the events of visits: `period`, `visit` (identifies a visit within it), `distinct_id`, the time, `at` (in
 * microseconds), `position` (their order), `is_view`, `is_selected`, `is_campaign` (0 or 1), and the columns.
 */
export function keyedHits(
  store: EventSql,
  query: WebQuery,
  columns: readonly Omit<RoleColumn, "role">[],
): string {
  const { dialect, eventProperties } = store;
  const { request, eventFilters } = query;
  const { parts, baseMicros, spanMs } = inRanges(store, query);
  const session = `coalesce(${stringAt(dialect, eventProperties, "$session_id")}, '')`;
  const at = dialect.micros(dialect.time("e"));
  const offset = `(${at} - ${baseMicros})`;
  const selected = eventFilters.map((filter) => webFilterSql(store, filter));
  const values: [name: string, sql: string][] = [
    ["distinct_id", "e.distinct_id"],
    [timeColumn(store), dialect.time("e")],
    ["at", at],
    ["position", spanMs < tieSpanMs ? `${offset} * ${tieSteps} + e.seq % ${tieSteps}` : offset],
    ["is_view", `CASE WHEN ${isView(store, query)} THEN 1 ELSE 0 END`],
    ["is_selected", selected.length === 0 ? "1" : `CASE WHEN ${selected.join(" AND ")} THEN 1 ELSE 0 END`],
    ["is_campaign", hasCampaign(store)],
    ...columns.map(({ name, value }): [string, string] => [name, value]),
  ];
  const read = values.map(([name, sql]) => `${sql} AS ${name}`).join(", ");
  const preserved = ["period", ...values.map(([name]) => name)].map((name) => `h.${name}`).join(", ");
  const persons = eventFilters.some(isAboutPerson) ? dialect.personOfEvent(request.projectId) : "";
  const excluded = uncountedEvents.map(dialect.text).join(", ");
  const hits = (visit: string, condition: string) =>
    parts
      .map(
        ({
          where,
          period,
        }) => `SELECT ${period} AS period, ${read}, ${visit} AS visit FROM events e ${persons}
         WHERE ${where} AND e.event NOT IN (${excluded}) AND ${condition}`,
      )
      .join(" UNION ALL ");
  return `${hits(session, `${session} <> ''`)} UNION ALL
    SELECT ${preserved}, ${splitVisit} AS visit FROM (${split(hits("''", `${session} = ''`))}) AS h`;
}

/** The name of a visit that was found by gaps. */
const splitVisit = `concat('/', h.distinct_id, '/', h.gaps::VARCHAR, '/', ${`
  (CASE WHEN h.at - h.started > ${dayMicros} THEN floor((h.at - h.started - 1) / ${dayMicros}.0) ELSE 0 END)`}::BIGINT::VARCHAR)`;

/** SQL for events with `gaps`, the number of gaps before each, and `started`, the time of the first one since. */
function split(hits: string): string {
  const over = (frame: string) =>
    `OVER (PARTITION BY h.period, h.distinct_id ORDER BY h.position ROWS BETWEEN ${frame})`;
  const before = `min(h.at) ${over("1 PRECEDING AND 1 PRECEDING")}`;
  const isNew = `CASE WHEN coalesce(h.at - ${before} > ${gapMicros}, true) THEN 1 ELSE 0 END`;
  const marked = `SELECT h.*, ${isNew} AS is_new FROM (${hits}) AS h`;
  const counted = `SELECT h.*, sum(h.is_new) ${over("UNBOUNDED PRECEDING AND CURRENT ROW")} AS gaps FROM (${marked}) AS h`;
  return `SELECT h.*, min(h.at) OVER (PARTITION BY h.period, h.distinct_id, h.gaps) AS started FROM (${counted}) AS h`;
}

/** SQL for whether the event `e` is a page view. */
export function isView({ dialect }: EventSql, { request }: WebQuery): string {
  const names = request.web?.countsScreens === true ? ["$pageview", "$screen"] : ["$pageview"];
  return `e.event IN (${names.map(dialect.text).join(", ")})`;
}

/** Conditions on the event `e` to be in a range, and SQL for its period. */
interface RangePart {
  where: string;
  period: string;
}

/** SQL for events of the ranges: `where` for these, `all` also for those between, and the parts to read. */
export function inRanges({ dialect }: EventSql, { request, current, previous }: WebQuery) {
  const within = (range: Range) => rangeSql(dialect, range, request).within.join(" AND ");
  const whereIn = (range: Range) => `e.project_id = ${request.projectId} AND ${within(range)}`;
  const span = previous === undefined ? current : getSpan(previous, current);
  const all = whereIn(span);
  const where = previous === undefined ? all : `${all} AND (${within(current)} OR ${within(previous)})`;
  const ofPeriod = (range: Range, period: number): RangePart => ({
    where: whereIn(range),
    period: `${period}`,
  });
  let parts = [ofPeriod(current, periods.current)];
  if (previous !== undefined && previous.toMs > current.fromMs)
    // Events in both ranges are read twice.
    parts.push(ofPeriod(previous, periods.previous));
  else if (previous !== undefined)
    parts = [
      { where, period: `CASE WHEN ${within(current)} THEN ${periods.current} ELSE ${periods.previous} END` },
    ];
  // Two days earlier: wall times are not instants.
  return {
    where,
    all,
    parts,
    baseMicros: (span.fromMs - 2 * dayMs) * 1_000,
    spanMs: span.toMs - span.fromMs,
  };
}

/** The range from the start of one to the end of another, later one. */
const getSpan = ({ from, fromMs }: Range, { to, toMs, weekStartDay }: Range): Range => {
  return { from, fromMs, to, toMs, weekStartDay };
};
