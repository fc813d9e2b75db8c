/** Questions as statements: what they count is what the computed queries count, hostile names included. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { finished, firstQuestion, type Question, queryOf } from "../../src/console/page/model/insight.ts";
import { type Figure, personsStatement, statementOf } from "../../src/console/page/model/insight-sql.ts";
import { TestAppliance } from "../support/appliance.ts";

/** The same numbers in every run. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const hostile = `it's "so"; --`;
const events = ["signed up", "paid", hostile];
const zone = "Pacific/Auckland";
let appliance: TestAppliance;

beforeAll(async () => {
  appliance = await TestAppliance.start();
  const random = randomFrom(11);
  const pick = <Item>(items: readonly Item[]) => items[Math.floor(random() * items.length)]!;
  const dayMs = 86_400_000;
  const people = Array.from({ length: 20 }, (_, number) => ({
    event: "$set",
    distinct_id: `user-${number}`,
    timestamp: new Date(Date.now() - 20 * dayMs).toISOString(),
    properties: { $set: { plan: pick(["free", "pro"]) } },
  }));
  const others = Array.from({ length: 600 }, () => ({
    event: pick(events),
    distinct_id: `user-${Math.floor(random() * 20)}`,
    timestamp: new Date(Date.now() - random() * 18 * dayMs).toISOString(),
    properties: {
      [hostile]: pick(["A", "b", hostile]),
      $session_id: `s${Math.floor(random() * 50)}`,
      ...(random() < 0.7 ? { amount: Math.round(random() * 100) } : {}),
    },
  }));
  await appliance.batch([...people, ...others]);
  await appliance.eventsWhenStored(620, "order=seq&limit=1000");
  const path = `/api/projects/${appliance.made.project.id}/`;
  expect((await appliance.api(path, { method: "PATCH", body: { timezone: zone } })).status).toBe(200);
});
afterAll(async () => await appliance?.[Symbol.asyncDispose]());

async function ask<Answer>(query: unknown): Promise<Answer> {
  const path = `/api/projects/${appliance.made.project.id}/query/`;
  const answer = await appliance.api(path, { method: "POST", body: { query, limit: 10_000 } });
  const body = await answer.json();
  if (answer.status !== 200) throw new Error(`${JSON.stringify(body)} for ${JSON.stringify(query)}`);
  return body as Answer;
}
const rowsOf = async (statement: string) => (await ask<{ rows: Record<string, unknown>[] }>(statement)).rows;

interface Trend {
  count: number;
  data: number[];
  days: string[];
  breakdown_value?: string;
  action: { order: number };
}

const question = (more: Partial<Question>) => finished({ ...firstQuestion, range: "-14d", ...more });
const trends: Record<string, Question> = {
  "all events": question({}),
  "an event, by hour": question({
    series: [{ event: hostile, math: "total" }],
    interval: "hour",
    range: "-24h",
  }),
  "unique persons by week": question({ series: [{ event: "paid", math: "dau" }], interval: "week" }),
  sessions: question({ series: [{ event: "", math: "unique_session" }], range: "all", interval: "month" }),
  "a sum where somebody pays": question({
    series: [{ event: "paid", math: "sum", math_property: "amount" }],
    properties: [{ key: "plan", type: "person", operator: "exact", value: ["PRO"] }],
  }),
  "a share": question({ series: [{ event: "paid", math: "p90", math_property: "amount" }] }),
  "several, each with filters": question({
    series: [
      {
        event: "paid",
        math: "total",
        properties: [{ key: "amount", type: "event", operator: "gte", value: "50" }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: hostile, type: "event", operator: "is_not", value: ["a", hostile] }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: "amount", type: "event", operator: "is_not_set", value: "is_not_set" }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: hostile, type: "event", operator: "not_icontains", value: "'S" }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: hostile, type: "event", operator: "regex", value: "^[Ab]$" }],
      },
    ],
  }),
  "a breakdown": question({ breakdown: hostile }),
};

for (const [name, asked] of Object.entries(trends)) {
  test(`${name}: the statement counts as the trend does`, async () => {
    const { results } = await ask<{ results: Trend[] }>(queryOf(asked));
    expect(results.some(({ count }) => count > 0)).toBe(true);
    const wanted = results.flatMap(({ data, days, breakdown_value: value, action }) =>
      data.flatMap((amount, place) => (amount === 0 ? [] : [[days[place]!, action.order, value, amount]])),
    );
    const found = (await rowsOf(statementOf(asked, zone))).map((row) => [
      String(row.period)
        .replace("T", " ")
        .slice(0, asked.interval === "hour" ? 19 : 10),
      row.series === undefined ? 0 : String(row.series).charCodeAt(0) - 65,
      asked.breakdown ? row[asked.breakdown] : undefined,
      Number(row.value),
    ]);
    const inOrder = (rows: unknown[][]) => rows.map((row) => JSON.stringify(row)).sort();
    expect(inOrder(found.filter((row) => row[3] !== 0))).toEqual(inOrder(wanted));
  });
}

test("behind a figure stand as many events, and as many persons, as it says", async () => {
  const asked = question({ breakdown: hostile });
  const { results } = await ask<{ results: Trend[] }>(queryOf(asked));
  for (const { data, days, breakdown_value: value } of results) {
    const place = data.indexOf(Math.max(...data));
    const figure: Figure = { series: 0, day: days[place]!, breakdown: value };
    const rows = await rowsOf(personsStatement(asked, figure, zone));
    expect(rows.reduce((sum, { times }) => sum + Number(times), 0)).toBe(data[place]!);
  }
  const persons = trends["unique persons by week"]!;
  const [unique] = (await ask<{ results: Trend[] }>(queryOf(persons))).results;
  const figure: Figure = { series: 0, day: unique!.days[1]! };
  const rows = await rowsOf(personsStatement(persons, figure, zone));
  expect(rows).toHaveLength(unique!.data[1]!);
  expect(new Set(rows.map(({ who }) => who)).size).toBe(rows.length);
});

test("a funnel's statement, and who came to each step", async () => {
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
  const { results } = await ask<{ results: { count: number }[] }>(queryOf(asked));
  const counts = results.map(({ count }) => count);
  expect(counts[2]).toBeGreaterThan(0);
  const found = await rowsOf(statementOf(asked, zone));
  expect(found.map(({ persons }) => Number(persons))).toEqual(counts);
  for (const [series, count] of counts.entries()) {
    expect(await rowsOf(personsStatement(asked, { series }, zone))).toHaveLength(count);
  }
});
