/** Stores with the events of visits, and short forms of web queries. */

import type { JsonObject } from "../../../src/lib/json/value.ts";
import { type TestEvent, TestStores } from "../../support/event-store.ts";
import { now } from "./visits-fixture.ts";

export type Answer = {
  // biome-ignore lint/suspicious/noExplicitAny: objects or lists, by the kind of query
  results: any[];
} & Record<string, unknown>;

export const request = { projectId: 1, timezone: "UTC", now };

export async function open(events: TestEvent[]): Promise<TestStores> {
  const opened = await TestStores.open();
  await opened.load(events);
  await opened.mirror.follow();
  return opened;
}

export const byKey = ({ results }: Answer, member = "value") =>
  Object.fromEntries(results.map((result) => [result.key, result[member]]));

export const list = (breakdownBy: string, more: JsonObject = {}) =>
  ({ kind: "WebStatsTableQuery", breakdownBy, includeBounceRate: true, ...more }) as JsonObject;
