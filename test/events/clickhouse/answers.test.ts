/** Both engines answer every question alike: the same events, the same persons, any question. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import fc from "fast-check";
import { membership } from "../../../src/cohorts/cohorts.ts";
import { behaviorLists, withBehaviorLists } from "../../../src/engine/behavior.ts";
import { computeBlastRadius } from "../../../src/engine/blast-radius.ts";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import { hasHistory, knownUuids, storedEvents } from "../../../src/events/duckdb/known-uuids.ts";
import { type ExportPosition, exportPage } from "../../../src/events/export/page.ts";
import type { ExperimentRequest } from "../../../src/events/insights/experiment.ts";
import { computeExperiment } from "../../../src/events/insights/experiment-sql.ts";
import { countFlagCalls } from "../../../src/events/insights/flag-evaluations.ts";
import { listEvents } from "../../../src/events/list.ts";
import type { EventSql } from "../../../src/events/sql-dialect.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { SqlitePersonReader } from "../../../src/persons/sqlite-person-reader.ts";
import {
  hasClickHouse,
  type TestClickHouse as Server,
  TestClickHouse,
  testWithClickHouse,
} from "../../support/clickhouse.ts";
import { ClickHouseStores } from "../../support/clickhouse-stores.ts";
import { type TestEvent, TestStores } from "../../support/event-store.ts";
import { day, filter, keys, listing, now, query, start, timezone, world } from "./random-queries.ts";

const test = testWithClickHouse("both engines answer alike");

/** Sums of fractions depend on the order, in the last digits. */
const rounded = (answer: unknown): unknown =>
  JSON.parse(
    JSON.stringify(answer, (_, part) => (typeof part === "number" ? Number(part.toPrecision(9)) : part)),
  );

function getEvents(
  all: readonly (typeof world extends fc.Arbitrary<infer W> ? W : never)[number][],
): TestEvent[] {
  return all.map(({ minute, person, properties: own, ...rest }) => ({
    ...rest,
    event: person !== null && "$anon_distinct_id" in person ? "$identify" : rest.event,
    // Often at the same moment: which of these is first is told by how they arrived.
    time: start + Math.floor(minute / 45) * 45 * 60_000,
    properties: { ...own, ...person },
  }));
}

let server: Server;
beforeAll(async () => {
  if (hasClickHouse) server = await TestClickHouse.start();
});
afterAll(async () => {
  if (hasClickHouse) await server[Symbol.asyncDispose]();
});

async function withBoth(
  events: TestEvent[],
  historical: readonly boolean[],
  ask: (
    both: <Answer>(question: (store: EventSql) => Promise<Answer>) => Promise<Answer>,
    stores: TestStores,
    outside: ClickHouseStores,
  ) => Promise<void>,
): Promise<void> {
  await using stores = await TestStores.open();
  await stores.load(events.filter((_, index) => !historical[index]));
  await stores.load(
    events.filter((_, index) => historical[index]),
    "historical",
  );
  await stores.load([{ project: 2, event: "visit", distinctId: "ann" }]);
  await stores.mirror.follow();
  const outside = await ClickHouseStores.beside(server, stores);
  const result = async (answer: Promise<unknown>) =>
    await answer.then(rounded, (error) => ({ rejected: String(error) }));
  try {
    await ask(
      async (question) => {
        const answer = await stores.ask(question).catch((error) => {
          return { rejected: String(error) } as never;
        });
        expect(await result(outside.ask(question))).toEqual(rounded(answer) as never);
        return answer;
      },
      stores,
      outside,
    );
  } finally {
    await outside.close(true);
    await server.run(`DROP DATABASE ${outside.database}`);
  }
}

describe("both engines answer alike", () => {
  test("insights, lists, exports, flag calls, reach, behavior", async () => {
    await fc.assert(
      fc.asyncProperty(
        world,
        fc.array(fc.tuple(query, timezone), { minLength: 25, maxLength: 40 }),
        fc.array(listing, { minLength: 10, maxLength: 15 }),
        fc.array(
          fc.array(
            filter.map((one) => ({ ...one, type: "person" })),
            { maxLength: 2 },
          ),
          {
            minLength: 5,
            maxLength: 8,
          },
        ),
        fc.subarray(keys),
        async (all, queries, listings, sets, columns) => {
          await withBoth(
            getEvents(all),
            all.map(({ historical }) => historical),
            async (both, stores, outside) => {
              await outside.columns.add(columns);
              for (const [asked, zone] of queries) {
                await both((store) =>
                  computeInsight(store, { projectId: 1, query: asked, timezone: zone, now }),
                );
              }
              for (const wanted of listings) {
                const page = await both((store) => listEvents(store, wanted));
                if (page.next !== undefined)
                  await both((store) => listEvents(store, { ...wanted, from: page.next }));
              }
              for (const zone of ["UTC", "Asia/Kathmandu"])
                await both((store) =>
                  countFlagCalls(store, {
                    projectId: 1,
                    keys: ["free", "it's", "12"],
                    days: 9,
                    timezone: zone,
                    now,
                  }),
                );
              for (const query of experiments())
                await both((store) =>
                  computeExperiment(store, { projectId: 1, query, timezone: "UTC", now }),
                );
              await bothExports(both, stores);
              const uuids = (await stores.rows("SELECT uuid::VARCHAR FROM events")).map(([uuid]) =>
                String(uuid),
              );
              const asked = [...uuids, crypto.randomUUID(), Bun.randomUUIDv7()];
              await both(async (store) => (await knownUuids(store, 1, asked)).sort());
              await both(async (store) =>
                (await storedEvents(store, 1, asked)).sort((one, other) => (one.uuid < other.uuid ? -1 : 1)),
              );
              for (const project of [1, 7]) await both((store) => hasHistory(store, project));
              for (const conditions of sets) {
                const request = {
                  projectId: 1,
                  cohorts: [],
                  timezone: "UTC",
                  now,
                  groupTypeIndex: null,
                  flagKey: "it's",
                  sets: [
                    { filters: conditions, rolloutPercentage: 40 },
                    { filters: [], rolloutPercentage: 75 },
                  ],
                };
                await both((store) => {
                  const run = <Result>(question: (own: EventSql) => Promise<Result>) => question(store);
                  return computeBlastRadius(
                    { persons: new SqlitePersonReader(stores.people), copies: stores.mirror, run },
                    request,
                  );
                });
                await both((store) => behavior(store, conditions));
              }
            },
          );
        },
      ),
      { numRuns: 3, endOnFailure: true },
    );
  });
});

/** Experiments on what the events call a flag, with every kind of metric. */
function experiments(): JsonObject[] {
  const source = (event: string, more: JsonObject = {}): JsonObject => ({
    kind: "EventsNode",
    event,
    ...more,
  });
  const seats = source("pay", { math: "sum", math_property: "seats" });
  const dayMicros = day * 1_000;
  const request = (more: Partial<ExperimentRequest>) =>
    ({
      flagKey: "free",
      variants: ["free", "12", "true", "it's"],
      multiple: "first_seen",
      maturedOnly: false,
      start: start * 1_000,
      end: (start + 11 * day) * 1_000,
      periodStarts: [(start + 4 * day) * 1_000],
      exposure: source("visit"),
      metrics: [
        { type: "mean", source: seats, lookbackMicros: 2 * dayMicros },
        {
          type: "mean",
          source: seats,
          lower: 0.1,
          upper: 0.8,
          ignoresZeros: true,
          windowMicros: 3 * dayMicros,
        },
        { type: "mean", source: source("signup"), threshold: 2 },
        ...["avg", "min", "max"].map((math) => ({
          type: "mean",
          source: source("pay", { math, math_property: "seats" }),
        })),
        { type: "mean", source: source("pay", { math: "unique_session" }) },
        { type: "ratio", numerator: seats, denominator: source("signup") },
        {
          type: "funnel",
          series: [source("signup"), source("pay")],
          isOrdered: true,
          lookbackMicros: dayMicros,
        },
        {
          type: "funnel",
          series: [source("pay"), source("pay")],
          isOrdered: false,
          windowMicros: 5 * dayMicros,
        },
        {
          type: "retention",
          start: source("signup"),
          completion: source("pay"),
          fromMicros: dayMicros,
          toMicros: 6 * dayMicros,
        },
      ],
      ...more,
    }) as unknown as JsonObject;
  return [
    // The variant of an own exposure event is the property `$feature/<key>`.
    request({ flagKey: "free", variants: ["all"], isEveryone: true, exposure: undefined }),
    request({ exposure: undefined, multiple: "exclude", maturedOnly: true }),
    request({ variants: ["all"], isEveryone: true, exposure: undefined, activation: source("signup") }),
  ];
}

async function bothExports(
  both: <Answer>(question: (store: EventSql) => Promise<Answer>) => Promise<Answer>,
  stores: TestStores,
): Promise<void> {
  const loadedSeqs = {
    realtime: stores.loader.cursor("realtime"),
    historical: stores.loader.cursor("historical"),
  };
  let after: ExportPosition | undefined;
  do {
    const page = await both((store) =>
      exportPage(
        { store, persons: new SqlitePersonReader(stores.people), loadedSeqs },
        { projectId: 1, subject: "events", after },
      ),
    );
    after = page.next;
  } while (after !== undefined);
}

async function behavior(store: EventSql, conditions: JsonObject[]): Promise<Json> {
  const filtered = {
    type: "behavioral",
    key: "visit",
    value: "performed_event_multiple",
    operator: "gte",
    operator_value: 2,
    time_value: 10,
    time_interval: "day",
    event_filters: conditions.map((one) => ({ ...one, type: "event" })),
  };
  const cohort = {
    id: 1,
    name: "",
    isStatic: false,
    filters: { properties: { type: "AND", values: [filtered] } },
  };
  const { behaviors } = withBehaviorLists([cohort as never], membership(1));
  const lists = await behaviorLists(store, 1, behaviors, now);
  return [...lists.values()].map((members) => [...members].sort());
}
