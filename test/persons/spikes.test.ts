import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { HeavyHitters } from "../../src/persons/spike-detector.ts";
import { listSpikes } from "../../src/persons/spike-store.ts";
import { type EventParts, event, newYearMicros, secondMicros, TestPersons } from "./support.ts";

const minute = 60 * secondMicros;

/** Feeds a store with traffic and a clock; each minute's events come evenly, in batches of ten seconds. */
class Traffic {
  nowMicros = newYearMicros;
  readonly signals: string[] = [];

  constructor(readonly people: TestPersons) {}

  /** @param perMinute events per minute, for some minutes. */
  run(perMinute: number, minutes: number, parts: (index: number) => EventParts = () => ({})): void {
    for (let step = 0; step < minutes * 6; step += 1) {
      const count = Math.floor((perMinute * (step + 1)) / 6) - Math.floor((perMinute * step) / 6);
      const items = Array.from({ length: count }, (_, index) =>
        event({
          mode: "propertyless",
          receivedMicros: this.nowMicros + Math.floor((10 * secondMicros * index) / count),
          ...parts(index),
        }),
      );
      if (items.length > 0) this.note(this.people.apply(...items));
      this.nowMicros += 10 * secondMicros;
      this.note(this.people.store.tick(this.nowMicros));
    }
  }

  /** Time in which nothing runs. */
  stand(minutes: number): void {
    this.nowMicros += minutes * minute;
    this.people.reopen();
  }

  get spikes() {
    return listSpikes(this.people.db, 1);
  }

  private note(signals: { kind: string; projectId: number }[]): void {
    this.signals.push(...signals.map(({ kind, projectId }) => `${projectId} ${kind}`));
  }
}

const quick = { factor: 10, minimumPerMinute: 60, historyMinutes: 60, historyMinutesMin: 2 };

describe("a spike", () => {
  test("begins above ten times the baseline rate and ends when the rate is back", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(150, 5);
    traffic.run(1_400, 2);
    expect(traffic.spikes).toEqual([]);
    const startedAfter = traffic.nowMicros;
    traffic.run(2_400, 2, (index) => ({ event: index % 3 === 0 ? "login" : "retry", distinctId: "bot" }));
    const endedBefore = traffic.nowMicros;
    expect(traffic.signals).toEqual(["1 began"]);
    expect(traffic.spikes[0]).toMatchObject({ endedMicros: null, baselinePerMinute: 150 });
    traffic.run(150, 3);
    expect(traffic.signals).toEqual(["1 began", "1 ended"]);
    const [spike] = traffic.spikes;
    expect(traffic.spikes).toHaveLength(1);
    expect(spike!.startedMicros).toBeGreaterThan(startedAfter);
    expect(spike!.startedMicros).toBeLessThan(startedAfter + minute);
    expect(spike!.endedMicros!).toBeGreaterThan(endedBefore - minute);
    expect(spike!.endedMicros!).toBeLessThan(endedBefore + minute);
    expect(spike!.peakPerMinute).toBeGreaterThan(2_100);
    expect(spike!.peakPerMinute).toBeLessThanOrEqual(2_400);
    expect(spike!.events.slice(0, 2).map((entry) => entry.event)).toEqual(["retry", "login"]);
    expect(spike!.distinctIds[0]!.distinctId).toBe("bot");
    expect(spike!.distinctIds[0]!.count).toBe(4_800);
    people.reopen();
    traffic.run(150, 1);
    expect(traffic.signals).toEqual(["1 began", "1 ended"]);
  });

  test("is seen in the batch that makes it one", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(10, 3);
    const burst = (count: number) =>
      Array.from({ length: count }, () => event({ mode: "propertyless", receivedMicros: traffic.nowMicros }));
    expect(people.apply(...burst(980))).toEqual([]);
    expect(people.apply(...burst(21))).toMatchObject([{ kind: "began", baselinePerMinute: 10 }]);
  });

  test("needs the minimum, even with a baseline of zero", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(1, 4);
    traffic.run(990, 2);
    expect(traffic.spikes).toEqual([]);
    traffic.run(1_200, 1);
    expect(traffic.spikes).toHaveLength(1);
  });

  test("does not change the baseline while it lasts", () => {
    using people = new TestPersons(quick);
    const traffic = new Traffic(people);
    traffic.run(6, 2);
    traffic.run(200, 6);
    traffic.run(6, 3);
    traffic.run(200, 2);
    expect(traffic.signals).toEqual(["1 began", "1 ended", "1 began"]);
  });

  test("needs two minutes of history", () => {
    using young = new TestPersons();
    const start = new Traffic(young);
    start.run(1, 1);
    start.run(5_000, 1);
    expect(start.spikes).toEqual([]);
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(3_000, 2);
    expect(traffic.spikes).toEqual([]);
    traffic.run(40_000, 1);
    expect(traffic.signals).toEqual(["1 began"]);
  });

  test("is not caused by historical events, which do not count for the baseline either", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(10, 3);
    traffic.run(50_000, 1, () => ({ historical: true }));
    expect(traffic.spikes).toEqual([]);
    traffic.run(1_300, 1);
    expect(traffic.spikes[0]!.baselinePerMinute).toBeLessThanOrEqual(10);
  });

  test("belongs to its project", () => {
    using people = new TestPersons(quick);
    const traffic = new Traffic(people);
    traffic.run(6, 3);
    traffic.run(6, 3, () => ({ projectId: 2 }));
    traffic.run(100, 1, () => ({ projectId: 2 }));
    expect(traffic.signals).toEqual(["2 began"]);
    expect(traffic.spikes).toEqual([]);
  });

  test("of one project may be repeated", () => {
    using people = new TestPersons(quick);
    const traffic = new Traffic(people);
    for (let round = 0; round < 3; round += 1) {
      traffic.run(6, 4);
      traffic.run(200, 2);
    }
    traffic.run(6, 4);
    expect(traffic.spikes).toHaveLength(3);
    expect(traffic.spikes.map(({ baselinePerMinute }) => baselinePerMinute)).toEqual([6, 6, 6]);
    expect(traffic.spikes.every(({ endedMicros }) => endedMicros !== null)).toBe(true);
  });

  test("that does not end is the new baseline", () => {
    using people = new TestPersons({ ...quick, historyMinutes: 5 });
    const traffic = new Traffic(people);
    traffic.run(6, 6);
    traffic.run(200, 6);
    expect(traffic.signals).toEqual(["1 began", "1 ended"]);
    traffic.run(4_000, 1);
    expect(traffic.spikes[0]).toMatchObject({ baselinePerMinute: 200, endedMicros: null });
  });

  test("ends by later events too, during a backlog and without a tick", () => {
    using people = new TestPersons(quick);
    const items = (count: number, from: number) =>
      Array.from({ length: count }, (_, index) =>
        event({
          mode: "propertyless",
          receivedMicros: newYearMicros + from + Math.floor((minute * index) / count),
        }),
      );
    const minutes = [6, 6, 6, 300, 6, 6, 6].flatMap((count, index) => items(count, index * minute));
    expect(people.apply(...minutes).map(({ kind }) => kind)).toEqual(["began", "ended"]);
  });
});

describe("over a restart", () => {
  test("the baseline is stored", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(500, 4);
    people.reopen();
    traffic.run(4_000, 1);
    expect(traffic.spikes).toEqual([]);
    traffic.run(9_000, 1);
    expect(traffic.signals).toEqual(["1 began"]);
  });

  test("an open spike continues as the same one", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(10, 4);
    traffic.run(2_000, 1, () => ({ distinctId: "bot" }));
    people.reopen();
    traffic.run(3_000, 1, () => ({ distinctId: "bot" }));
    traffic.run(10, 3);
    expect(traffic.signals).toEqual(["1 began", "1 ended"]);
    expect(traffic.spikes).toHaveLength(1);
    expect(traffic.spikes[0]!.peakPerMinute).toBeGreaterThan(2_000);
    expect(traffic.spikes[0]!.distinctIds[0]!.count).toBeGreaterThan(4_000);
  });

  test("the time in which Flagkeep stood still is not history", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(5_000, 10);
    traffic.stand(40);
    traffic.run(5_000, 3);
    expect(traffic.spikes).toEqual([]);
  });

  test("a spike during which Flagkeep stopped for long is closed", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(10, 4);
    traffic.run(2_000, 1);
    traffic.stand(30);
    traffic.run(10, 1);
    expect(traffic.signals).toEqual(["1 began", "1 ended"]);
  });
});

describe("a clock", () => {
  test("that is set back makes no spike, and later ones are still seen", () => {
    using people = new TestPersons();
    const traffic = new Traffic(people);
    traffic.run(800, 5);
    traffic.nowMicros -= 60 * minute;
    traffic.run(800, 5);
    expect(traffic.spikes).toEqual([]);
    traffic.run(12_000, 1);
    expect(traffic.spikes).toHaveLength(1);
  });
});

describe("counting the most frequent names", () => {
  test("is exact within its capacity, and never off by more than its bound", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 300 }),
        fc.nat(15),
        (names, skew) => {
          const capacity = 10;
          const whole = new HeavyHitters(capacity);
          const left = new HeavyHitters(capacity);
          const right = new HeavyHitters(capacity);
          const exact = new Map<string, number>();
          names.forEach((number, index) => {
            const name = String(number % (1 + skew * 2));
            exact.set(name, (exact.get(name) ?? 0) + 1);
            whole.add(name);
            (index % 2 === 0 ? left : right).add(name);
          });
          left.addAll(right);
          for (const counted of [whole, left]) {
            const top = new Map(counted.top(capacity));
            for (const [name, count] of exact) {
              const shown = top.get(name) ?? 0;
              expect(shown).toBeLessThanOrEqual(count);
              const errorMax = exact.size <= capacity ? 0 : names.length / (capacity + 1);
              expect(shown).toBeGreaterThanOrEqual(count - errorMax);
            }
            expect(counted.top(3).length).toBeLessThanOrEqual(3);
          }
        },
      ),
    );
  });
});
