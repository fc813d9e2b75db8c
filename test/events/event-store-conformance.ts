/** What `EventStore` promises, as tests that run over every implementation. */

import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { type EventStore, StagingError } from "../../src/events/store.ts";
import type { EventEntry } from "../../src/journal/entry.ts";
import type { Lane } from "../../src/journal/segment.ts";

/** An event as it is read back. */
export interface StoredRow {
  projectId: number;
  seq: number;
  uuid: string;
  event: string;
  distinctId: string;
  timeMicros: number;
  receivedMicros: number;
  historical: boolean;
  elementsChain: string | null;
  properties: unknown;
}

export interface EventStoreUnderTest {
  store: EventStore;
  /** Every stored event, in order of project, lane and sequence number. */
  rows(): Promise<StoredRow[]>;
  /** Opens what is stored once more, as after a crash. */
  reopen(): Promise<EventStoreUnderTest>;
  close(): Promise<void>;
}

setDefaultTimeout(30_000);

let lastSeq = 0;

/** An event and its properties as values. */
type TestEntry = EventEntry & { properties: Record<string, unknown> };

function entry(parts: Partial<TestEntry> = {}): TestEntry {
  lastSeq += 1;
  const timeMicros = Date.UTC(2026, 0, 1) * 1_000 + lastSeq;
  const properties = parts.properties ?? { n: lastSeq };
  return {
    kind: "event",
    seq: lastSeq,
    projectId: 1,
    uuid: Bun.randomUUIDv7(),
    event: "seen",
    distinctId: "a",
    timeMicros,
    receivedMicros: timeMicros + 5,
    historical: false,
    mode: "full",
    hasGeneratedUuid: false,
    elementsChain: null,
    propertiesText: Buffer.from(JSON.stringify(properties)),
    ...parts,
    properties,
  };
}

const columns = [
  "projectId",
  "seq",
  "uuid",
  "event",
  "distinctId",
  "timeMicros",
  "receivedMicros",
  "historical",
  "elementsChain",
  "properties",
] as const;
const shown = (stored: TestEntry) =>
  Object.fromEntries(columns.map((name) => [name, stored[name]])) as unknown as StoredRow;

const inOrder = (rows: StoredRow[]): StoredRow[] =>
  rows.toSorted(
    (a, b) => a.projectId - b.projectId || Number(a.historical) - Number(b.historical) || a.seq - b.seq,
  );

export function eventStoreConformance(name: string, open: () => Promise<EventStoreUnderTest>): void {
  describe(`${name} is an event store`, () => {
    const opened: EventStoreUnderTest[] = [];
    const start = async () => {
      const created = await open();
      opened.push(created);
      return created;
    };
    const again = async (one: EventStoreUnderTest) => {
      const reopened = await one.reopen();
      opened.splice(opened.indexOf(one), 1, reopened);
      return reopened;
    };
    afterEach(async () => {
      for (const one of opened.splice(0)) await one.close();
    });

    test("cursors begin at 0, move with the batches of their lane, also without events, and survive", async () => {
      const one = await start();
      expect([one.store.cursor("realtime"), one.store.cursor("historical")]).toEqual([0, 0]);
      await one.store.load("realtime", 7, [entry({ seq: 3 })]);
      await one.store.load("historical", 5, []);
      const { store } = await again(one);
      expect([store.cursor("realtime"), store.cursor("historical")]).toEqual([7, 5]);
    });

    test("events are read back whole", async () => {
      const one = await start();
      const events = [
        entry({ event: "", distinctId: "ü\u0000\u{1F600}'\"\\" }),
        entry({ event: "e".repeat(100_000), distinctId: "d".repeat(100_000) }),
        entry({ properties: { text: "x".repeat(5_000_000), "$a/b~c.d": [1, { "": null }], "🎈": "\u2028" } }),
        entry({ elementsChain: 'a:nth-child="1";b', historical: true }),
        entry({ timeMicros: -62_135_596_800_000_000, projectId: 2 }),
        entry({ timeMicros: 7_258_118_400_000_001, uuid: "00000000-0000-0000-0000-000000000000" }),
        entry({ uuid: "ffffffff-ffff-ffff-ffff-ffffffffffff" }),
        entry({ propertiesText: Buffer.from('{"n":12345678901234567890,"f":1e400}'), properties: {} }),
      ];
      await one.store.load("realtime", lastSeq, events);
      const rows = await (await again(one)).rows();
      const expected = inOrder(events.map(shown));
      const exact = events.at(-1)!.seq;
      const whole = (row: StoredRow) => row.seq !== exact;
      expect(rows.filter(whole)).toEqual(expected.filter(whole));
      expect(rows.length).toBe(events.length);
    });

    test("what is staged is loaded with the rest or forgotten with it, and is not known before", async () => {
      const one = await start();
      const { store } = one;
      if (store.stage === undefined) return;
      const events = [3, 1, 2].map((n) => entry({ timeMicros: n }));
      const forgotten = entry();
      await store.stage([forgotten]);
      await store.unstage!();
      await store.stage(events.slice(0, 2));
      await store.stage([]);
      expect(await store.known(events)).toEqual(new Set());
      expect(await one.rows()).toEqual([]);
      await store.load("realtime", lastSeq, events.slice(2));
      expect(await store.known([forgotten, ...events])).toEqual(new Set(events.map(({ seq }) => seq)));
      expect(await store.checkpoint()).toBe(true);
      expect(await (await again(one)).rows()).toEqual(inOrder(events.map(shown)));
    });

    test("a failure while events are staged forgets them; they can be loaded then", async () => {
      const one = await start();
      const { store } = one;
      if (store.stage === undefined) return;
      const events = [entry(), entry()];
      const unreadable = null as never;
      await store.stage(events);
      await expect(store.stage([unreadable])).rejects.toBeInstanceOf(StagingError);
      await store.stage(events);
      await expect(store.load("realtime", lastSeq, [unreadable])).rejects.toBeInstanceOf(StagingError);
      expect(store.cursor("realtime")).toBe(0);
      await store.load("realtime", lastSeq, events);
      expect(await (await again(one)).rows()).toEqual(inOrder(events.map(shown)));
    });

    test("known: by uuid within the project, from either lane, of every version and age", async () => {
      const one = await start();
      const uuids = [
        Bun.randomUUIDv7(),
        Bun.randomUUIDv7("hex", Date.UTC(1971, 0, 1)),
        Bun.randomUUIDv7("hex", Date.UTC(9999, 0, 1)),
        crypto.randomUUID(),
        "ffffffff-ffff-7fff-bfff-ffffffffffff",
        "00000000-0000-7000-8000-000000000000",
        "00000000-0000-0000-0000-000000000000",
      ];
      await one.store.load(
        "realtime",
        lastSeq + uuids.length,
        uuids.map((uuid) => entry({ uuid })),
      );
      const { store } = await again(one);
      const copies = uuids.map((uuid) => entry({ uuid, historical: true, timeMicros: 1 }));
      const elsewhere = uuids.map((uuid) => entry({ uuid, projectId: 2 }));
      const others = [entry(), entry({ uuid: crypto.randomUUID() })];
      expect(await store.known([...copies, ...elsewhere, ...others])).toEqual(
        new Set(copies.map(({ seq }) => seq)),
      );
      expect(await store.known([])).toEqual(new Set());
    });

    test("any batches with copies among them: each uuid of a project once, the first of them", async () => {
      const uuids = Array.from({ length: 8 }, (_, n) => (n % 2 ? crypto.randomUUID() : Bun.randomUUIDv7()));
      const batch = fc.record({
        historical: fc.boolean(),
        picks: fc.array(fc.record({ uuid: fc.constantFrom(...uuids), projectId: fc.constantFrom(1, 2) }), {
          maxLength: 12,
        }),
        reopens: fc.integer({ min: 0, max: 5 }).map((n) => n === 0),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 6 }), async (batches) => {
          let one = await start();
          const model = new Map<string, StoredRow>();
          for (const { historical, picks, reopens } of batches) {
            const lane: Lane = historical ? "historical" : "realtime";
            const entries = picks.map((pick) => entry({ ...pick, historical }));
            const known = await one.store.known(entries);
            const fresh: TestEntry[] = [];
            for (const event of entries) {
              const key = `${event.projectId} ${event.uuid}`;
              expect([event.seq, known.has(event.seq)]).toEqual([
                event.seq,
                model.has(key) && !fresh.some(({ seq }) => seq === model.get(key)!.seq),
              ]);
              if (model.has(key)) continue;
              model.set(key, shown(event));
              fresh.push(event);
            }
            await one.store.load(lane, lastSeq, fresh);
            if (reopens) one = await again(one);
          }
          expect(await one.rows()).toEqual(inOrder([...model.values()]));
          await one.close();
          opened.splice(opened.indexOf(one), 1);
        }),
        { numRuns: 12 },
      );
    }, 60_000);

    test("a checkpoint keeps everything", async () => {
      const one = await start();
      const events = Array.from({ length: 3_000 }, () => entry());
      await one.store.load("realtime", lastSeq, events);
      while (!(await one.store.checkpoint())) await Bun.sleep(10);
      expect((await (await again(one)).rows()).length).toBe(events.length);
    });
  });
}
