import { describe, expect, test } from "bun:test";
import { listUsage } from "../../src/persons/usage.ts";
import {
  listWarnings,
  pruneWarnings,
  recordWarnings,
  warningRetentionDays,
  warningSubjectsMax,
} from "../../src/persons/warnings.ts";
import { event, identify, newYearMicros, note, secondMicros, TestPersons } from "./support.ts";

const hour = 3_600 * secondMicros;
const day = 24 * hour;

describe("warnings", () => {
  test("of one kind, subject and hour are counted in one row with the first details", () => {
    using people = new TestPersons();
    const at = (offset: number) => ({ receivedMicros: newYearMicros + offset });
    const about = (distinctId: string, n: number) => ({ details: { distinctId, n } });
    people.apply(note({ ...at(5), ...about("a", 1) }), note({ ...at(9), ...about("a", 2) }));
    people.apply(note({ ...at(7), ...about("a", 3) }), note({ ...at(8), ...about("b", 4) }));
    people.apply(note({ ...at(6), ...about("a", 3) }), note({ ...at(6), ...about("a", 3) }));
    people.apply(note({ ...at(hour), ...about("a", 5) }));
    expect(listWarnings(people.db, 1).map(({ id: _, ...warning }) => warning)).toEqual([
      {
        projectId: 1,
        type: "ignored_invalid_timestamp",
        subject: "a",
        details: { distinctId: "a", n: 5 },
        firstMicros: newYearMicros + hour,
        lastMicros: newYearMicros + hour,
        count: 1,
      },
      {
        projectId: 1,
        type: "ignored_invalid_timestamp",
        subject: "a",
        details: { distinctId: "a", n: 1 },
        firstMicros: newYearMicros + 5,
        lastMicros: newYearMicros + 9,
        count: 5,
      },
      {
        projectId: 1,
        type: "ignored_invalid_timestamp",
        subject: "b",
        details: { distinctId: "b", n: 4 },
        firstMicros: newYearMicros + 8,
        lastMicros: newYearMicros + 8,
        count: 1,
      },
    ]);
  });

  test("beyond the limit of subjects the counts stay exact", () => {
    for (const inOneBatch of [true, false]) {
      using people = new TestPersons();
      const notes = Array.from({ length: warningSubjectsMax * 2 }, (_, index) =>
        note({
          receivedMicros: newYearMicros,
          details: { distinctId: `id-${index % (warningSubjectsMax * 2)}` },
        }),
      );
      if (inOneBatch) people.apply(...notes);
      else for (let from = 0; from < notes.length; from += 50) people.apply(...notes.slice(from, from + 50));
      const rows = listWarnings(people.db, 1, { limit: 1_000 });
      expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(notes.length);
      expect(rows).toHaveLength(warningSubjectsMax + 1);
      expect(rows.find(({ subject }) => subject === "")?.count).toBe(warningSubjectsMax);
    }
  });

  test("can be listed by type and in pages, and only those of the project", () => {
    using people = new TestPersons();
    people.apply(note(), note({ type: "invalid_uuid" }), note({ projectId: 2 }));
    expect(listWarnings(people.db, 1, { types: ["invalid_uuid"] })).toHaveLength(1);
    expect(listWarnings(people.db, 1, { limit: 1, offset: 1 }).map(({ type }) => type)).toEqual([
      "ignored_invalid_timestamp",
    ]);
  });

  test("with endless details keep a note instead", () => {
    using people = new TestPersons();
    people.apply(note({ details: { text: "x".repeat(10_000) } }));
    expect(listWarnings(people.db, 1)[0]!.details).toEqual({
      message: "The details were too long to store.",
    });
  });

  test("are forgotten when they are old, by the tick too", () => {
    using people = new TestPersons();
    recordWarnings(people.db, [{ projectId: 1, type: "old", details: {}, receivedMicros: newYearMicros }]);
    pruneWarnings(people.db, newYearMicros);
    expect(people.warnings()).toEqual(["old"]);
    people.store.tick(newYearMicros + warningRetentionDays * day);
    expect(people.warnings()).toEqual(["old"]);
    people.store.tick(newYearMicros + warningRetentionDays * day + hour);
    expect(people.warnings()).toEqual([]);
  });
});

describe("usage", () => {
  test("counts each event once, by UTC day of receipt", () => {
    using people = new TestPersons();
    const today = { receivedMicros: newYearMicros, timeMicros: newYearMicros - 90 * day };
    const tomorrow = { receivedMicros: newYearMicros + day };
    people.apply(
      event(today),
      event({ ...today, mode: "propertyless" }),
      event({ ...today, mode: "propertyless", event: "$identify" }),
      note({ kind: "drop", ...today }),
      note({ kind: "warning", ...today }),
      identify("a", "null", tomorrow),
      event({ ...tomorrow, projectId: 2 }),
    );
    const old = event({ ...today, historical: true });
    const step = people.store.start("historical");
    step.add({
      items: [old, event({ ...today, historical: true, mode: "propertyless" })],
      duplicates: [{ projectId: 1, receivedMicros: newYearMicros + day, historical: true, count: 3 }],
    });
    step.commit(old.seq);
    const first = { identified: 1, anonymous: 2, historical: 2, billable: 3, duplicates: 0, dropped: 1 };
    const second = { identified: 1, anonymous: 0, historical: 0, billable: 1, duplicates: 3, dropped: 0 };
    expect(listUsage(people.db, 1)).toEqual({
      results: [
        { date: "2026-01-01", ...first },
        { date: "2026-01-02", ...second },
      ],
      totals: { identified: 2, anonymous: 2, historical: 2, billable: 4, duplicates: 3, dropped: 1 },
    });
    expect(listUsage(people.db, 1, { dateFrom: "2026-01-02" }).totals).toEqual(second);
    expect(listUsage(people.db, 1, { dateFrom: "2026-01-01", dateTo: "2026-01-01" }).totals).toEqual(first);
    expect(listUsage(people.db, 3)).toEqual({
      results: [],
      totals: { identified: 0, anonymous: 0, historical: 0, billable: 0, duplicates: 0, dropped: 0 },
    });
  });
});
