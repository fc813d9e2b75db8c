/** What `IdentityStore` promises, as tests that run over every implementation. */

import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JournalEvent, JournalItem } from "../../src/journal/entry.ts";
import type { Lane } from "../../src/journal/segment.ts";
import type { IdentityStore } from "../../src/persons/batch.ts";
import { Model } from "./model.ts";
import { alias, event, identify, mergeDangerously, note, type SeenPerson, set } from "./support.ts";

export interface IdentityStoreUnderTest {
  store: IdentityStore;
  /** The persons of a project, in any order; ids with the main one first. */
  persons(projectId: number): Promise<SeenPerson[]>;
  /** How many events were counted for a project. */
  counted(projectId: number): Promise<number>;
  /** Opens what is stored once more, as after a crash. */
  reopen(): Promise<IdentityStoreUnderTest>;
  close(): Promise<void>;
}

const getLane = (item: JournalItem): Lane => (item.historical ? "historical" : "realtime");

async function apply(store: IdentityStore, ...items: JournalItem[]): Promise<void> {
  await applyParts(store, [items]);
}

/** Applies items as one step, in parts. */
async function applyParts(store: IdentityStore, parts: readonly JournalItem[][]): Promise<void> {
  const items = parts.flat();
  const step = await store.start(getLane(items[0]!));
  try {
    for (const part of parts) await step.add({ items: part, duplicates: [] });
    await step.commit(items.at(-1)!.seq);
  } catch (error) {
    step.abandon();
    throw error;
  }
}

const byIds = (persons: readonly SeenPerson[]) =>
  persons.toSorted((one, other) => (one.ids.join() < other.ids.join() ? -1 : 1));

/** @param histories how many made-up histories are tried. */
export function identityStoreConformance(
  name: string,
  open: () => Promise<IdentityStoreUnderTest>,
  histories = 100,
): void {
  describe(`${name} is an identity store`, () => {
    const opened = new Set<IdentityStoreUnderTest>();
    const start = async () => {
      const created = await open();
      opened.add(created);
      return created;
    };
    const again = async (one: IdentityStoreUnderTest) => {
      const reopened = await one.reopen();
      opened.delete(one);
      opened.add(reopened);
      return reopened;
    };
    afterEach(async () => {
      for (const one of opened) await one.close();
      opened.clear();
    });

    test("cursors begin at 0, move with the batches of their lane, also without items, and survive", async () => {
      const one = await start();
      expect([one.store.cursor("realtime"), one.store.cursor("historical")]).toEqual([0, 0]);
      const item = event();
      const step = await one.store.start("realtime");
      await step.add({ items: [item], duplicates: [] });
      await step.commit(item.seq + 5);
      await (await one.store.start("historical")).commit(3);
      const { store } = await again(one);
      expect([store.cursor("realtime"), store.cursor("historical")]).toEqual([item.seq + 5, 3]);
    });

    test("what the cursor covers has no effect again, alone or before something new", async () => {
      let one = await start();
      const items = [set("a", { n: 1 }), note(), identify("a", "anon"), set("a", { n: 2 })];
      await apply(one.store, ...items);
      one = await again(one);
      const before = [await one.persons(1), await one.counted(1)];
      await apply(one.store, ...items);
      expect([await one.persons(1), await one.counted(1)]).toEqual(before);
      const more = [set("a", { n: 3 }), set("b", { n: 4 })];
      await apply(one.store, ...items, ...more);
      expect(await one.counted(1)).toBe((before[1] as number) + more.length);
      expect(byIds(await one.persons(1)).map(({ properties }) => properties.n)).toEqual([3, 4]);
    });

    test("a failed batch changes nothing and can be applied again", async () => {
      const one = await start();
      await apply(one.store, set("a", { n: 1 }));
      const before = [await one.persons(1), await one.counted(1), one.store.cursor("realtime")];
      const bad = Object.defineProperty(event(), "properties", {
        get() {
          throw new Error("broken on purpose");
        },
      });
      const batch = [set("a", { n: 2 }), set("new", { n: 3 }), bad];
      expect(await (async () => apply(one.store, ...batch))().then(() => "applied", String)).toContain(
        "on purpose",
      );
      expect([await one.persons(1), await one.counted(1), one.store.cursor("realtime")]).toEqual(before);
      await apply(one.store, ...batch.slice(0, 2));
      expect((await one.persons(1)).length).toBe(2);
    });

    test("projects do not see each other's persons", async () => {
      const one = await start();
      await apply(
        one.store,
        set("a", { n: 1 }),
        set("a", { n: 2 }, { projectId: 2 }),
        alias("a", "b", { projectId: 2 }),
      );
      expect((await one.persons(1)).map(({ ids, properties }) => [ids, properties.n])).toEqual([[["a"], 1]]);
      expect((await one.persons(2)).map(({ ids }) => ids.toSorted())).toEqual([["a", "b"]]);
    });

    const ids = fc.constantFrom("a", "b", "c", "d", "e");
    const values = fc.dictionary(fc.constantFrom("p", "q"), fc.integer({ min: 0, max: 2 }), { maxKeys: 2 });
    const step = fc.record({
      make: fc.constantFrom("set", "see", "identify", "alias", "merge"),
      id: ids,
      other: ids,
      values,
      timeMicros: fc.integer({ min: 1, max: 5 }),
      historical: fc.boolean(),
      endsPart: fc.boolean(),
      endsBatch: fc.boolean(),
      reopens: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    });

    test("any history, cut into any steps and parts of them, gives what the rules say", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
          let one = await start();
          const model = new Model();
          let parts: JournalEvent[][] = [[]];
          const flush = async () => {
            if (parts.flat().length > 0) await applyParts(one.store, parts);
            parts = [[]];
          };
          for (const {
            make,
            id,
            other,
            values,
            timeMicros,
            historical,
            endsPart,
            endsBatch,
            reopens,
          } of steps) {
            const more = { timeMicros, historical };
            const properties = { $set: values };
            const item =
              make === "set"
                ? set(id, values, more)
                : make === "see"
                  ? event({ distinctId: id, ...more })
                  : make === "identify"
                    ? identify(id, other, { ...more, properties })
                    : (make === "alias" ? alias : mergeDangerously)(id, other, { ...more, properties });
            const first = parts.flat()[0];
            if (first !== undefined && first.historical !== historical) await flush();
            parts.at(-1)!.push(item);
            model.apply(item);
            if (endsPart) parts.push([]);
            if (endsBatch) await flush();
            if (endsBatch && reopens) one = await again(one);
          }
          await flush();
          const expected = model
            .shown()
            .map(({ ids, identified, properties: { $creator_event_uuid: _, ...properties } }) => ({
              ids,
              identified,
              properties,
            }));
          expect(byIds(await one.persons(1))).toEqual(byIds(expected));
          await one.close();
          opened.delete(one);
        }),
        { numRuns: histories },
      );
    }, 60_000);
  });
}
