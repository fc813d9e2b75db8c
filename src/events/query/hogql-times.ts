/**
 * HogQL's functions of time whose form depends on their arguments. Times are instants (`TIMESTAMPTZ`); a connection's
 * zone is that of the project, so DuckDB's functions read the project's clock. Pure.
 */

import { isNumeric, isText } from "./hogql-types.ts";
import { fold, getConstant, type Node, textConstant } from "./nodes.ts";

export interface TimeForm {
  sql: string;
  args?: Node[];
}

/** Context that a function of time depends on, in addition to its arguments. */
export interface TimeContext {
  /** First day of the week. */
  weekStartDay: number;
  /** The zone that `toTimeZone` gave to an argument. */
  zone: Node | undefined;
}

/** An argument as an instant: strings without an offset are in the project's zone; numbers are Unix seconds. */
export function instantSql(placeholder: string, argument: Node | undefined): string {
  return argument !== undefined && isNumeric(argument)
    ? `timezone('UTC', make_timestamp(CAST(CAST(${placeholder} AS DOUBLE) * 1000000 AS BIGINT)))`
    : `TRY_CAST(${placeholder} AS TIMESTAMPTZ)`;
}

/** Functions whose result has the zone of their argument. */
const zonePreserving =
  /^(?:tostartof(?:second|minute|hour|day|interval|fiveminutes?|tenminutes|fifteenminutes)|date_?trunc|date_?(?:add|sub)|(?:add|subtract)[a-z]+s|todatetime|parsedatetime)/;

/** The zone of a function's result, if it is not the project's. */
export function resultZone(name: string, args: readonly Node[], zone: Node | undefined): Node | undefined {
  if (name === "totimezone") return args[1];
  if (!zonePreserving.test(name)) return undefined;
  return zone ?? explicitZone(name, args);
}

function explicitZone(name: string, args: readonly Node[]): Node | undefined {
  const last = args.at(-1);
  if (args.length < 2 || typeof getConstant(last) !== "string") return undefined;
  return /^(?:add|subtract|date_?(?:add|sub))/.test(name) || (/^date/.test(name) && args.length < 3)
    ? undefined
    : last;
}

/** @returns undefined for functions that have a template, and for others */
export function timeForm(name: string, args: Node[], context: TimeContext): TimeForm | undefined {
  const [time, second, third] = args;
  switch (name) {
    case "totimezone":
      return { sql: "@1" };
    case "now64":
      return { sql: "now()" };
    case "todatetime":
    case "parsedatetimebesteffort":
    case "parsedatetimebesteffortornull":
    case "parsedatetime64besteffort":
    case "parsedatetime64besteffortornull":
      return second === undefined ? undefined : read([time!, second]);
    case "todatetime64":
      return read(third === undefined ? [time!] : [time!, third]);
    case "formatdatetime":
      return clock("strftime(@1, _2)", [time!, convertFormat(second!)], third ?? context.zone);
    case "tostring":
      if (context.zone !== undefined) return clock("CAST(@1 AS VARCHAR)", [time!], context.zone);
      return time !== undefined && (isText(time) || isNumeric(time))
        ? { sql: "CAST(_1 AS VARCHAR)" }
        : undefined;
    case "todayofweek":
      return clock("isodow(@1)", [time!], third ?? context.zone);
    case "tostartofweek":
      return clock(startOfWeek(weekStart(second, context)), [time!], third ?? context.zone);
    case "tostartofinterval":
      return startOfInterval(time!, second, third ?? context.zone);
    case "dateadd":
    case "datesub":
    case "date_add":
    case "date_sub":
      return dateStep(name.endsWith("add") ? "+" : "-", args);
    default:
      return undefined;
  }
}

/** A time in a zone; one with an offset is exact. */
function read(args: Node[]): TimeForm {
  const [time, zone] = args;
  const isString = isText(time!) || typeof getConstant(time) === "string";
  if (zone === undefined || !isString) return { sql: "@1", args: [time!] };
  const sql =
    "CASE WHEN regexp_matches(_1, '[T ].*([+-]\\d\\d(:?\\d\\d)?|Z)$') THEN TRY_CAST(_1 AS TIMESTAMPTZ) " +
    "ELSE timezone(_2, TRY_CAST(_1 AS TIMESTAMP)) END";
  return { sql, args };
}

/** A function of the clock in a zone; undefined: the project's. */
function clock(sql: string, args: Node[], zone: Node | undefined): TimeForm {
  if (zone === undefined) return { sql, args };
  return { sql: sql.replaceAll("@1", `timezone(_${args.length + 1}, @1)`), args: [...args, zone] };
}

/** ClickHouse's modes of weeks: even ones start on Sunday. Without a mode, the project's setting applies. */
function weekStart(mode: Node | undefined, { weekStartDay }: TimeContext): number {
  const number = getConstant(mode);
  return typeof number === "number" ? number % 2 : weekStartDay;
}

function startOfWeek(startDay: number): string {
  if (startDay === 1) return "CAST(date_trunc('week', @1) AS DATE)";
  return "CAST(date_trunc('week', @1 + INTERVAL 1 DAY) - INTERVAL 1 DAY AS DATE)";
}

/** Minutes and seconds are counted in UTC, so that repeated hours stay apart; longer intervals by the clock. */
function startOfInterval(time: Node, interval: Node | undefined, zone: Node | undefined): TimeForm {
  const unit = String(interval?.function_name);
  if (["to_seconds", "to_minutes"].includes(unit)) {
    return { sql: "time_bucket(_2, @1, TIMESTAMPTZ '1970-01-01 00:00:00+00')", args: [time, interval!] };
  }
  // Weeks start on Monday.
  const origin = `TIMESTAMP '${unit === "to_weeks" ? "1970-01-05" : "1970-01-01"}'`;
  if (zone !== undefined) {
    const sql = `timezone(_3, time_bucket(_2, timezone(_3, @1), ${origin}))`;
    return { sql, args: [time, interval!, zone] };
  }
  const sql = `CAST(time_bucket(_2, CAST(@1 AS TIMESTAMP), ${origin}) AS TIMESTAMPTZ)`;
  return { sql, args: [time, interval!] };
}

/** `dateAdd('day', 2, time)` and `dateAdd(time, INTERVAL 2 DAY)`. */
function dateStep(sign: "+" | "-", args: readonly Node[]): TimeForm | undefined {
  if (args.length === 2) return { sql: `@1 ${sign} _2` };
  const unit = fold(String(getConstant(args[0]) ?? ""));
  const isUnit = /^(?:second|minute|hour|day|week|month|quarter|year)$/.test(unit);
  if (args.length !== 3 || !isUnit || !isNumeric(args[1]!)) return undefined;
  return { sql: `@3 ${sign} to_${unit}s(CAST(_2 AS INTEGER))` };
}

/** MySQL's codes, as in ClickHouse, to those of `strftime`. */
const formatCodes: Readonly<Record<string, string>> = {
  M: "B",
  i: "M",
  s: "S",
  R: "H:%M",
  T: "H:%M:%S",
  F: "Y-%m-%d",
};

function convertFormat(format: Node): Node {
  const text = getConstant(format);
  if (typeof text !== "string") return format;
  return textConstant(text.replaceAll(/%(.)/g, (_, code: string) => `%${formatCodes[code] ?? code}`));
}
