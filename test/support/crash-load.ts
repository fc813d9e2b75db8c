/** Writers that remember what was acknowledged, for tests that kill processes meanwhile. */

import { expect } from "bun:test";
import { type ServerProcess, until } from "./server.ts";

/** Waits until a marker sent now, in each lane, is readable: then nothing before it waits in the journal. */
export async function everythingIsLoaded(server: ServerProcess): Promise<void> {
  for (const historical of [false, true]) {
    const uuid = Bun.randomUUIDv7();
    const marker = { event: "marker", uuid, properties: { distinct_id: "marker" } };
    const response = await server.batch([marker], { historical_migration: historical });
    expect(response.status).toBe(200);
    await until(
      async () => (await server.events(`uuid=${uuid}`)).length === 1,
      "the marker is readable",
      60_000,
    );
  }
}

export class Load {
  sent = 0;

  constructor(
    private readonly server: ServerProcess,
    private readonly acknowledged: Set<string>,
    private readonly historicalOrder: string[],
    private readonly label: string,
    private readonly random: () => number,
  ) {}

  singles(): Promise<void> {
    return this.untilDown(async () => {
      const event = this.event();
      const response = await this.server.capture(event);
      if (response.status === 200) this.acknowledged.add(event.uuid);
    });
  }

  batches(): Promise<void> {
    return this.untilDown(async () => {
      const events = Array.from({ length: 1 + Math.floor(this.random() * 50) }, () => this.event());
      const response = await this.server.batch(events);
      if (response.status === 200) for (const { uuid } of events) this.acknowledged.add(uuid);
    });
  }

  historical(): Promise<void> {
    return this.untilDown(async () => {
      const events = Array.from({ length: 1 + Math.floor(this.random() * 50) }, () => this.event());
      const response = await this.server.batch(events, { historical_migration: true });
      if (response.status !== 200) return;
      for (const { uuid } of events) {
        this.acknowledged.add(uuid);
        this.historicalOrder.push(uuid);
      }
    });
  }

  private event() {
    this.sent += 1;
    const number = Math.floor(this.random() * 30);
    return {
      event: "crash test",
      uuid: Bun.randomUUIDv7(),
      distinct_id: `user-${number}`,
      properties: {
        round: this.label,
        $set: { seen: this.sent },
        padding: "x".repeat(Math.floor(this.random() * 900)),
      },
    };
  }

  private async untilDown(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await work();
      } catch {
        return;
      }
    }
  }
}

/** A small seeded random number generator, so that a failing run can be repeated. */
export function mulberry32(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}
