/** Questions as statements: what they count is what the computed queries count, hostile names included. */

import { beforeAll, expect, test } from "bun:test";
import {
  type FunnelTimes,
  getBreakdowns,
  getQuery,
  type InsightDraft,
} from "../../../src/console/page/model/insight.ts";
import type { Figure } from "../../../src/console/page/model/insight-sql.ts";
import { noValue } from "../../../src/events/insights/breakdown-values.ts";
import { randomFrom } from "../../support/seeded-random.ts";
import { server, useServer } from "../../support/use-server.ts";
import { dayAgo, hostile, question, someDays, trends } from "./view-sql-queries.ts";

const events = ["signed up", "paid", hostile];
const clock = { timezone: "Pacific/Auckland", weekStartDay: 0 };

useServer();
beforeAll(async () => {
  const random = randomFrom(11);
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)]!;
  const dayMs = 86_400_000;
  const people = Array.from({ length: 20 }, (_, number) => ({
    event: "$set",
    distinct_id: `user-${number}`,
    timestamp: new Date(Date.now() - 20 * dayMs).toISOString(),
    properties: { $set: { plan: pick(["free", "pro"]) } },
  }));
  const others = Array.from({ length: 600 }, (_, index) => ({
    event: pick(events),
    distinct_id: `user-${Math.floor(random() * 20)}`,
    timestamp: new Date(Date.now() - random() * 18 * dayMs).toISOString(),
    properties: {
      [hostile]: pick(["A", "b", hostile]),
      ...(index % 3 > 0 ? { size: index % 3 === 1 ? "S" : hostile } : {}),
      $session_id: `s${Math.floor(random() * 50)}`,
      ...(random() < 0.7 ? { amount: Math.round(random() * 100) } : {}),
    },
  }));
  await server.batch([...people, ...others]);
  await server.eventsWhenStored(620, "order=seq&limit=1000");
  const path = `/api/projects/${server.initialized.project.id}/`;
  const body = { timezone: clock.timezone, week_start_day: clock.weekStartDay };
  expect((await server.api(path, { method: "PATCH", body })).status).toBe(200);
});

async function ask<Answer>(query: unknown): Promise<Answer> {
  const path = `/api/projects/${server.initialized.project.id}/query/`;
  const answer = await server.api(path, { method: "POST", body: { query, limit: 10_000 } });
  const body = await answer.json();
  if (answer.status !== 200) throw new Error(`${JSON.stringify(body)} for ${JSON.stringify(query)}`);
  return body as Answer;
}
const getRows = async (statement: string) => (await ask<{ rows: Record<string, unknown>[] }>(statement)).rows;

async function print(body: object): Promise<string> {
  const path = `/api/projects/${server.initialized.project.id}/insights/sql/`;
  const answer = await server.api(path, { method: "POST", body });
  const { sql, detail } = (await answer.json()) as { sql?: string; detail?: string };
  if (sql === undefined) throw new Error(`${answer.status} ${detail} for ${JSON.stringify(body)}`);
  return sql;
}
const toStatement = (asked: InsightDraft) => print({ query: getQuery(asked) });
const personsStatement = (asked: InsightDraft, figure: Figure) =>
  print({ query: getQuery(asked), select: "persons", figure });

interface Trend {
  count: number;
  data: number[];
  days: string[];
  breakdown_value?: string | string[];
  action: { order: number } | null;
}

for (const [name, asked] of Object.entries(trends)) {
  test(`${name}: the statement counts as the trend does`, async () => {
    const { results } = await ask<{ results: Trend[] }>(getQuery(asked));
    expect(results.some(({ count }) => count > 0)).toBe(true);
    const wanted = results.flatMap(({ data, days, breakdown_value: value, action }) =>
      data.flatMap((amount, place) =>
        amount === 0 ? [] : [[days[place]!, action?.order ?? 0, ...[value].flat(), amount]],
      ),
    );
    const found = (await getRows(await toStatement(asked))).map((row) => [
      String(row.period)
        .replace("T", " ")
        .slice(0, asked.interval === "hour" ? 19 : 10),
      row.series === undefined ? 0 : String(row.series).charCodeAt(0) - 65,
      ...(getBreakdowns(asked).length === 0 ? [undefined] : getBreakdowns(asked)).map((one) =>
        one === undefined ? one : (row[one] ?? noValue),
      ),
      Number(row.value),
    ]);
    const inOrder = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(inOrder(found.filter((row) => row.at(-1) !== 0))).toEqual(inOrder(wanted));
  });
}

test("the statement of a figure returns as many events, and as many persons, as it shows", async () => {
  const asked = question({ breakdown: hostile });
  const { results } = await ask<{ results: Trend[] }>(getQuery(asked));
  for (const { data, days, breakdown_value: value } of results) {
    const place = data.indexOf(Math.max(...data));
    const figure: Figure = {
      series: 0,
      day: days[place]!,
      ...(value === undefined ? {} : { breakdown: [value].flat() }),
    };
    const rows = await getRows(await personsStatement(asked, figure));
    expect(rows.reduce((sum, { times }) => sum + Number(times), 0)).toBe(data[place]!);
  }
  const pairs = question({ breakdown: hostile, secondBreakdown: "size" });
  for (const { data, days, breakdown_value: value } of (
    await ask<{ results: Trend[] }>(getQuery(pairs))
  ).results.slice(0, 3)) {
    const place = data.indexOf(Math.max(...data));
    const rows = await getRows(
      await personsStatement(pairs, {
        series: 0,
        day: days[place]!,
        ...(value === undefined ? {} : { breakdown: [value].flat() }),
      }),
    );
    expect(rows.reduce((sum, { times }) => sum + Number(times), 0)).toBe(data[place]!);
  }
  const persons = trends["unique persons by week"]!;
  const [unique] = (await ask<{ results: Trend[] }>(getQuery(persons))).results;
  const figure: Figure = { series: 0, day: unique!.days[1]! };
  const rows = await getRows(await personsStatement(persons, figure));
  expect(rows).toHaveLength(unique!.data[1]!);
  expect(new Set(rows.map(({ who }) => who)).size).toBe(rows.length);
});

test("the matching persons of active users include those of the days before", async () => {
  for (const name of ["weekly active persons", "monthly active persons by week, with a breakdown"]) {
    const asked = trends[name]!;
    for (const { data, days, breakdown_value: value, action } of (
      await ask<{ results: Trend[] }>(getQuery(asked))
    ).results) {
      for (const place of [0, Math.floor(data.length / 2), data.length - 1]) {
        const figure: Figure = {
          series: action!.order,
          day: days[place]!,
          ...(value === undefined ? {} : { breakdown: [value].flat() }),
        };
        expect(await getRows(await personsStatement(asked, figure))).toHaveLength(data[place]!);
      }
    }
  }
  const asNumber: InsightDraft = { ...trends["weekly active persons"]!, view: "number" };
  const [whole] = (await ask<{ results: (Trend & { aggregated_value: number })[] }>(getQuery(asNumber)))
    .results;
  expect(await getRows(await personsStatement(asNumber, { series: 0 }))).toHaveLength(
    whole!.aggregated_value,
  );
});

test("a funnel's statement, and the persons of each step", async () => {
  const steps = ["signed up", "paid", hostile].map((event) => ({ event, math: "total" }));
  const asked = question({
    kind: "funnel",
    window: 1,
    series: [
      steps[0]!,
      { ...steps[1]!, properties: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }] },
      steps[2]!,
    ],
  });
  const { results } = await ask<{ results: { count: number }[] }>(getQuery(asked));
  const counts = results.map(({ count }) => count);
  expect(counts[2]).toBeGreaterThan(0);
  const found = await getRows(await toStatement(asked));
  expect(found.map(({ persons }) => Number(persons))).toEqual(counts);
  for (const [series, count] of counts.entries()) {
    expect(await getRows(await personsStatement(asked, { series }))).toHaveLength(count);
  }
});

const steps = ["signed up", "paid", hostile, "paid"].map((event) => ({ event, math: "total" }));
const funnels: Record<string, InsightDraft> = Object.fromEntries(
  ["ordered", "strict", "unordered"].flatMap((order) =>
    ["", hostile].map((breakdown) => [
      `${order}${breakdown ? ", broken down" : ""}`,
      question({ kind: "funnel", series: steps, window: 2, order, breakdown }),
    ]),
  ),
);

for (const [name, asked] of Object.entries(funnels)) {
  test(`a funnel, ${name}: the statement counts as the query does, with as many persons per step`, async () => {
    interface Step {
      count: number;
      order: number;
      breakdown_value?: [string];
    }
    const { results } = await ask<{ results: Step[] | Step[][] }>(getQuery(asked));
    const found = (results as Step[][]).flat();
    expect(found.some(({ count, order }) => count > 0 && order === 2)).toBe(true);
    const rows = (await getRows(await toStatement(asked))).map((row) => [
      asked.breakdown ? (row[asked.breakdown] ?? "") : undefined,
      row.step,
      Number(row.persons),
    ]);
    const wanted = found.map(({ breakdown_value: value, order, count }) => [value?.[0], order + 1, count]);
    const sorted = (lines: unknown[][]) =>
      lines
        .filter(([, , count]) => count !== 0)
        .map((line) => JSON.stringify(line))
        .sort();
    expect(sorted(rows)).toEqual(sorted(wanted));
    for (const { breakdown_value: value, order, count } of found) {
      const figure: Figure = { series: order, ...(value ? { breakdown: value } : {}) };
      const persons = await getRows(await personsStatement(asked, figure));
      expect([order, value, persons.length]).toEqual([order, value, count]);
    }
  });

  test(`a funnel by period, ${name}: the statement counts as the query does`, async () => {
    const byDay: InsightDraft = { ...asked, shape: "trends" };
    const { results } = await ask<{
      results: {
        days: string[];
        data: number[];
        reached_from_step_count: number[];
        breakdown_value?: [string];
      }[];
    }>(getQuery(byDay));
    const wanted = results.flatMap(
      ({ days, data, reached_from_step_count: started, breakdown_value: value }) =>
        days.flatMap((day, place) =>
          started[place] === 0 ? [] : [JSON.stringify([value?.[0], day, started[place], data[place]])],
        ),
    );
    expect(wanted.length).toBeGreaterThan(5);
    const rows = (await getRows(await toStatement(byDay))).map((row) =>
      JSON.stringify([
        asked.breakdown ? (row[asked.breakdown] ?? "") : undefined,
        String(row.period).slice(0, 10),
        Number(row.began),
        Number(row.percent),
      ]),
    );
    expect(rows.sort()).toEqual(wanted.sort());
  });
}

for (const order of ["ordered", "strict", "unordered"]) {
  test(`times through a funnel, ${order}: the statement returns those of the query, and their persons`, async () => {
    const asked = question({
      kind: "funnel",
      series: steps.slice(0, 3),
      window: 3,
      order,
      shape: "time_to_convert",
    });
    const { results } = await ask<{ results: FunnelTimes }>(getQuery(asked));
    const { bins, average_conversion_time: average } = results;
    const people = bins.reduce((sum, [, count]) => sum + count, 0);
    expect(people).toBeGreaterThan(2);
    const rows = (await getRows(await toStatement(asked))).map(({ seconds, persons }) => [
      Number(seconds),
      Number(persons),
    ]) as [number, number][];
    expect(rows.reduce((sum, [, count]) => sum + count, 0)).toBe(people);
    expect(rows.reduce((sum, [seconds, count]) => sum + seconds * count, 0) / people).toBeCloseTo(
      average!,
      3,
    );
    const width = bins[1]![0] - bins[0]![0];
    for (const [from, count] of bins) {
      const persons = await getRows(
        await personsStatement(asked, { series: 0, seconds: [from, from + width] }),
      );
      expect([from, persons.length]).toEqual([from, count]);
    }
  });
}

const proOnly = [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }];
for (const [name, asked] of Object.entries({
  "of all events by day": question({ kind: "retention" }),
  "of two events by week": question({
    kind: "retention",
    target: "paid",
    returning: hostile,
    period: "Week",
  }),
  "of their first time by day": question({ kind: "retention", target: "paid", cohort: "first" }),
  "of some persons by month": question({ kind: "retention", properties: proOnly, period: "Month" }),
})) {
  test(`a retention ${name}: the statement counts as the query does, with as many persons per figure`, async () => {
    const { results } = await ask<{ results: { date: string; values: { count: number }[] }[] }>(
      getQuery(asked),
    );
    const wanted = results.flatMap(({ date, values }) =>
      values.map(({ count }, later) => ({ day: date.slice(0, 10), later, count })),
    );
    const counted = wanted.filter(({ count }) => count > 0);
    // All events may be of one month.
    expect(counted.length).toBeGreaterThan(asked.period === "Month" ? 0 : 1);
    const rows = (await getRows(await toStatement(asked))).map((row) => ({
      day: String(row.began).slice(0, 10),
      later: Number(row.later),
      count: Number(row.persons),
    }));
    const sorted = (lines: { day: string; later: number; count: number }[]) =>
      lines.map((line) => JSON.stringify(line)).sort();
    expect(sorted(rows)).toEqual(sorted(counted));
    for (const { day, later, count } of [wanted.find((one) => one.count > 0)!, counted.at(-1)!, wanted[1]!]) {
      const persons = await getRows(await personsStatement(asked, { series: 0, day, later }));
      expect([day, later, persons.length]).toEqual([day, later, count]);
    }
  });
}

for (const [name, asked] of Object.entries({
  "of an event by day": question({ kind: "lifecycle", series: [{ event: "paid", math: "total" }] }),
  "of some persons by week": question({
    kind: "lifecycle",
    properties: proOnly,
    interval: "week",
    series: [{ event: hostile, math: "total" }],
  }),
  "of chosen days": question({ kind: "lifecycle", range: someDays }),
  "of everything by hour": question({ kind: "lifecycle", interval: "hour", range: "-24h" }),
})) {
  test(`a lifecycle ${name}: the statement counts as the query does, with as many persons per figure`, async () => {
    const { results } = await ask<{ results: { status: string; days: string[]; data: number[] }[] }>(
      getQuery(asked),
    );
    const wanted = results.flatMap(({ status, days, data }) =>
      days.flatMap((day, place) => (data[place] ? [{ day, status, count: data[place] }] : [])),
    );
    expect(new Set(wanted.map(({ status }) => status)).size).toBeGreaterThan(1);
    const rows = (await getRows(await toStatement(asked))).map((row) => ({
      day: String(row.period)
        .replace("T", " ")
        .slice(0, asked.interval === "hour" ? 19 : 10),
      status: row.status,
      count: Number(row.persons),
    }));
    const sorted = (lines: object[]) => lines.map((line) => JSON.stringify(line)).sort();
    expect(sorted(rows)).toEqual(sorted(wanted));
    for (const status of ["new", "returning", "resurrecting", "dormant"]) {
      const one = wanted.findLast((line) => line.status === status);
      if (one === undefined) continue;
      const persons = await getRows(await personsStatement(asked, { series: 0, day: one.day, status }));
      expect([status, persons.length]).toEqual([status, Math.abs(one.count)]);
    }
  });
}

test("a node that wraps the query, fixed ranges, other windows and more operators are printed", async () => {
  const series = [{ event: "paid", properties: [{ key: "amount", operator: "not_regex", value: "^[1-4]" }] }];
  const source = { kind: "TrendsQuery", series, dateRange: { date_from: dayAgo(9), date_to: dayAgo(2) } };
  const node = { kind: "InsightVizNode", source };
  const { results: trend } = await ask<{ results: { count: number }[] }>(node);
  const rows = await getRows(await print({ query: node }));
  expect(trend[0]!.count).toBeGreaterThan(0);
  expect(rows.reduce((sum, { value }) => sum + Number(value), 0)).toBe(trend[0]!.count);

  const hours = {
    kind: "FunnelsQuery",
    series: [{ event: "signed up" }, { event: "paid" }],
    dateRange: { date_from: "-14d" },
    funnelsFilter: { funnelWindowInterval: 36, funnelWindowIntervalUnit: "hour" },
  };
  const { results } = await ask<{ results: { count: number }[] }>(hours);
  expect((await getRows(await print({ query: hours }))).map(({ persons }) => Number(persons))).toEqual(
    results.map(({ count }) => count),
  );
});

test("what cannot be printed is rejected with the reason", async () => {
  const path = `/api/projects/${server.initialized.project.id}/insights/sql/`;
  const reject = async (body: object) => {
    const answer = await server.api(path, { method: "POST", body });
    return [answer.status, ((await answer.json()) as { detail: string }).detail];
  };
  const series = [{ event: "paid" }];
  const trend = { kind: "TrendsQuery", series };
  expect(await reject({ query: { kind: "StickinessQuery", series } })).toEqual([
    400,
    'Queries of kind "StickinessQuery" cannot be printed as SQL.',
  ]);
  expect(await reject({ query: trend, select: "persons" })).toEqual([
    400,
    "The persons of a figure require `figure`.",
  ]);
  expect(await reject({ query: trend, select: "persons", figure: { series: 1 } })).toEqual([
    400,
    "The query has no series 1: they start at 0.",
  ]);
  expect((await reject({ query: trend, select: "persons", figure: { series: 0, day: "'" } }))[0]).toBe(400);
  expect(await reject({ query: trend, select: "person_count" })).toEqual([
    400,
    'Queries of kind "TrendsQuery" cannot be printed as SQL.',
  ]);
  const several = { ...trend, trendsFilter: { formulas: ["A", "A * 2"] } };
  expect(await reject({ query: several })).toEqual([400, "Several formulas cannot be printed as SQL."]);
});
