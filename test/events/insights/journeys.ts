/** A few people and what they did, in the real event store. */

import { expect } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { TestStores } from "../../support/event-store.ts";

export const now = Date.UTC(2026, 10, 21, 12, 30);
export const hour = 3_600_000;
export const day = 24 * hour;

export class Journeys {
  private constructor(readonly stores: TestStores) {}

  static async open(): Promise<Journeys> {
    const stores = await TestStores.open();
    const at = (days: number, hours = 0) => now - days * day - hours * hour;
    await stores.load([
      // Ann goes all the way, first under another id; Bob stops; Cid pays too late; Dee does it the wrong way round.
      { event: "visit", distinctId: "ann-before", time: at(3, 2) },
      { event: "signup", distinctId: "ann", time: at(3, 1), properties: { plan: "pro" } },
      { event: "pay", distinctId: "ann", time: at(3) },
      { event: "visit", distinctId: "bob", time: at(2), properties: { source: "ad" } },
      { event: "signup", distinctId: "bob", time: at(1) },
      { event: "visit", distinctId: "cid", time: at(6), properties: { source: "ad" } },
      { event: "signup", distinctId: "cid", time: at(5) },
      { event: "pay", distinctId: "cid", time: at(1) },
      { event: "signup", distinctId: "dee", time: at(4) },
      { event: "visit", distinctId: "dee", time: at(3), properties: { source: "it's" } },
      { event: "visit", distinctId: "far", time: at(90) },
      { event: "visit", distinctId: "other", project: 2, time: at(2) },
      { event: "$identify", distinctId: "ann", time: now, properties: { $anon_distinct_id: "ann-before" } },
    ]);
    await stores.mirror.follow();
    return new Journeys(stores);
  }

  async compute(query: JsonObject, { timezone = "UTC", projectId = 1 } = {}) {
    const request = { projectId, query, timezone, now };
    return await this.stores.ask(async (store) => {
      const computed = await computeInsight(store, request);
      // Stores that cannot walk through a funnel compute the same.
      expect(await computeInsight({ ...store, walkOrdered: undefined }, request)).toEqual(computed);
      // biome-ignore lint/suspicious/noExplicitAny: results of every kind.
      return computed as any[];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stores[Symbol.asyncDispose]();
  }
}

export const steps = (...events: string[]) => events.map((event) => ({ kind: "EventsNode", event }));

export const counts = (results: { count: number }[]) => results.map(({ count }) => count);
