/** What `IngestionReader` promises, as tests that run over every implementation. */

import { afterEach, describe, expect, test } from "bun:test";
import type { JournalItem } from "../../src/journal/entry.ts";
import { DefinitionRecorder } from "../../src/persons/event-definitions.ts";
import type { IngestionReader } from "../../src/persons/ingestion-reader.ts";
import { event, newYearMicros, note, secondMicros, TestPersons } from "./support.ts";

export interface IngestionReaderUnderTest {
  reader: IngestionReader;
  close(): Promise<void>;
}

const page = { limit: 100, offset: 0 };

/** @param open a reader of what the engine stored in `people` until then. */
export function ingestionReaderConformance(
  name: string,
  open: (people: TestPersons) => Promise<IngestionReaderUnderTest>,
): void {
  describe(`${name} is a reader of what ingestion records`, () => {
    const opened: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const close of opened.splice(0)) await close();
    });
    const reading = async (fill: (people: TestPersons) => void): Promise<IngestionReader> => {
      const people = new TestPersons();
      opened.push(async () => people[Symbol.dispose]());
      fill(people);
      const { reader, close } = await open(people);
      opened.unshift(close);
      return reader;
    };
    const define = (people: TestPersons, ...items: JournalItem[]) => {
      const recorder = new DefinitionRecorder(people.db);
      recorder.collect(items);
      recorder.store();
    };

    test("definitions of events and properties, by name and searched", async () => {
      const reader = await reading((people) =>
        define(
          people,
          event({ event: "order paid", properties: { amount: 12.5, plan: "pro" } }),
          event({ event: "Ändern", properties: { plan: "Free", $set: { mail: "a@b.c" } } }),
          event({ event: "other", projectId: 2 }),
        ),
      );
      const events = await reader.eventDefinitions(1, "", page);
      expect([events.names.map((one) => one.name), events.count]).toEqual([["order paid", "Ändern"], 2]);
      expect(events.names[0]!.lastSeenMicros).toBeGreaterThan(newYearMicros);
      const searched = await reader.eventDefinitions(1, "ÄND", page);
      expect(searched.names.map((one) => one.name)).toEqual(["Ändern"]);
      const second = await reader.eventDefinitions(1, "", { limit: 1, offset: 1 });
      expect([second.names.map((one) => one.name), second.count]).toEqual([["Ändern"], 2]);
      const properties = async (owner: string, search = "") =>
        (await reader.propertyDefinitions({ projectId: 1, owner, search }, page)).names.map((one) => [
          one.name,
          one.type,
        ]);
      expect(await properties("event", "A")).toEqual([
        ["amount", "Numeric"],
        ["plan", "String"],
      ]);
      expect(await properties("person")).toEqual([["mail", "String"]]);
      expect(await properties("group:company")).toEqual([]);
      const values = async (search: string) =>
        await reader.propertyValues({ projectId: 1, owner: "event", name: "plan", search });
      expect(await values("")).toEqual(["Free", "pro"]);
      expect(await values("FR")).toEqual(["Free"]);
    });

    test("warnings, last seen first, and their counts", async () => {
      const at = (seconds: number) => newYearMicros + seconds * secondMicros;
      const reader = await reading((people) =>
        people.apply(
          note({ type: "odd", receivedMicros: at(10), details: { distinctId: "kim" } }),
          note({ type: "odd", receivedMicros: at(20), details: { distinctId: "kim" } }),
          note({ type: "late", receivedMicros: at(30) }),
          note({ type: "odd", receivedMicros: at(40), projectId: 2 }),
        ),
      );
      const warnings = await reader.warnings(1, { limit: 10 });
      expect(warnings.map(({ type, count, lastMicros }) => [type, count, lastMicros])).toEqual([
        ["late", 1, at(30)],
        ["odd", 2, at(20)],
      ]);
      expect(await reader.warnings(1, { limit: 1 })).toHaveLength(1);
      expect((await reader.warnings(1, { limit: 10, types: ["odd"] })).map(({ type }) => type)).toEqual([
        "odd",
      ]);
      expect(await reader.warningCounts(at(0))).toEqual([
        { projectId: 1, type: "odd", count: 2 },
        { projectId: 1, type: "late", count: 1 },
        { projectId: 2, type: "odd", count: 1 },
      ]);
      expect(await reader.warningCounts(at(30))).toEqual([
        { projectId: 1, type: "late", count: 1 },
        { projectId: 2, type: "odd", count: 1 },
      ]);
    });

    test("usage by day, within a range", async () => {
      const day = 86_400 * secondMicros;
      const reader = await reading((people) =>
        people.apply(
          event({ receivedMicros: newYearMicros }),
          event({ receivedMicros: newYearMicros + day, mode: "propertyless" }),
          event({ receivedMicros: newYearMicros + day }),
          event({ receivedMicros: newYearMicros + 2 * day, projectId: 2 }),
        ),
      );
      const none = { historical: 0, duplicates: 0, dropped: 0 };
      const first = { date: "2026-01-01", identified: 1, anonymous: 0, billable: 1, ...none };
      const second = { date: "2026-01-02", identified: 1, anonymous: 1, billable: 2, ...none };
      expect(await reader.usage(1, {})).toEqual({
        results: [first, second],
        totals: { identified: 2, anonymous: 1, billable: 3, ...none },
      });
      expect((await reader.usage(1, { dateFrom: "2026-01-02" })).results).toEqual([second]);
      expect((await reader.usage(1, { dateTo: "2026-01-01" })).results).toEqual([first]);
      expect((await reader.usage(3, {})).results).toEqual([]);
    });

    test("spikes, newest first", async () => {
      const minute = 60 * secondMicros;
      const burst = (count: number, receivedMicros: number) =>
        Array.from({ length: count }, () => event({ mode: "propertyless", receivedMicros }));
      const reader = await reading((people) => {
        for (let at = 0; at < 5; at++) people.apply(...burst(10, newYearMicros + at * minute));
        people.apply(...burst(1_100, newYearMicros + 5 * minute));
      });
      const [spike, ...others] = await reader.spikes(1, page);
      expect(spike).toMatchObject({ baselinePerMinute: 10, endedMicros: null });
      expect(others).toEqual([]);
      expect(await reader.spikes(1, { limit: 1, offset: 1 })).toEqual([]);
      expect(await reader.spikes(2, page)).toEqual([]);
    });
  });
}
