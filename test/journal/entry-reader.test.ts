/** Lines of events are read as bytes when they are as the writer writes them, and parsed as a whole otherwise: the same either way. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { EntryWriter, type EventEntry, lineOf } from "../../src/journal/entry.ts";
import { decodeEntries, withProperties, writtenLine } from "../../src/journal/entry-reader.ts";

/** Also halves of surrogate pairs' neighbours, quotes, back slashes and control characters. */
const text = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: 30 }),
    fc.constantFrom("$pageview", 'a"b', "a\\b", "\\", '\\"', "Köln 🧭", "\u0001\n", '","distinct_id":"'),
  )
  .map((written) => written.toWellFormed().replaceAll("\0", "0"));

const event = fc.record({
  uuid: fc.uuid(),
  isUuidMade: fc.boolean(),
  name: text,
  distinctId: text,
  time: fc.oneof(fc.integer({ min: -1e15, max: 4e15 }), fc.constant(0)),
  mode: fc.constantFrom("full" as const, "propertyless" as const),
  elementsChain: fc.option(text),
  properties: fc.dictionary(text, fc.jsonValue({ noUnicodeString: false, maxDepth: 2 }), { maxKeys: 4 }),
});

const written = (
  seq: number,
  { properties, ...rest }: typeof event extends fc.Arbitrary<infer E> ? E : never,
) =>
  lineOf(
    seq,
    new EntryWriter(7, 1_767_225_600_000_000, false).event({
      ...rest,
      properties: JSON.stringify(properties),
    }),
  );

test("any event is read as it was written", () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 4 }), (events) => {
      const lines = events.map((each, index) => written(index + 1, each)).join("");
      const { entries, refused } = decodeEntries(Buffer.from(lines), 0);
      expect(refused).toEqual([]);
      expect(entries.map((entry) => `${writtenLine(entry as EventEntry)}\n`).join("")).toBe(lines);
      for (const [index, entry] of entries.entries()) {
        const { name, distinctId, time, mode, elementsChain, uuid, isUuidMade } = events[index]!;
        expect(entry).toMatchObject({ seq: index + 1, projectId: 7, event: name, distinctId, mode, uuid });
        expect(entry).toMatchObject({ timeMicros: time, elementsChain, hasMadeUuid: isUuidMade });
        expect(withProperties(entry as EventEntry)!.properties).toEqual(
          JSON.parse(JSON.stringify(events[index]!.properties)),
        );
      }
    }),
  );
});

test("a line with other spacing or another order is read the same, and one behind the number only", () => {
  const own = { uuid: "0190f0e2-7a11-7b5e-8d4a-5f0c1ab2c3d4", event: "seen", distinct_id: "a" };
  const rest = { time: 1, received: 2, historical: true, mode: "full", made_uuid: false };
  const usual = JSON.stringify({
    seq: 5,
    project_id: 1,
    ...own,
    ...rest,
    elements_chain: null,
    properties: {},
  });
  const other = JSON.stringify({ seq: 5, ...rest, project_id: 1, ...own, properties: {} });
  const spaced = usual.replace('"event":"seen"', '"event": "seen"');
  const [first, ...others] = [usual, other, spaced].map(
    (line) => decodeEntries(Buffer.from(`${line}\n`), 4).entries[0],
  );
  expect(first).toMatchObject({ seq: 5, projectId: 1, event: "seen", historical: true });
  for (const entry of others) expect(entry).toEqual(first!);
  expect(decodeEntries(Buffer.from(`${usual}\n`), 5).entries).toEqual([]);
});

test.each([
  ["no uuid", (line: string) => line.replace(/[0-9a-f-]{36}/, "0")],
  ["a cut line", (line: string) => line.slice(0, -9)],
  ["a control character", (line: string) => line.replace("seen", "se\u0001en")],
  ["a number that is none", (line: string) => line.replace('"time":1', '"time":1x')],
])("refused: %s", (_, spoil) => {
  const uuid = "0190f0e2-7a11-7b5e-8d4a-5f0c1ab2c3d4";
  const line = new EntryWriter(1, 2, false).event({
    ...{ uuid, isUuidMade: false, name: "seen", distinctId: "a", time: 1, mode: "full" },
    ...{ elementsChain: null, properties: '{"a":1}' },
  });
  const spoilt = `{"seq":1,${spoil(line)}`;
  expect(decodeEntries(Buffer.from(`${spoilt}\n`), 0)).toEqual({ entries: [], refused: [spoilt] });
});
