/** Lines of events are read as bytes when they are as the writer writes them, and parsed as a whole otherwise: the same either way. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { EntryWriter, type EventEntry, getLine } from "../../src/journal/entry.ts";
import { decodeEntries, getProperties, writtenLine } from "../../src/journal/entry-reader.ts";
import { blockLine, segmentHeader } from "../../src/journal/segment.ts";

/** Also halves of surrogate pairs' neighbors, quotes, back slashes and control characters. */
const text = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: 30 }),
    fc.constantFrom("$pageview", 'a"b', "a\\b", "\\", '\\"', "Köln 🧭", "\u0001\n", '","distinct_id":"'),
  )
  .map((written) => written.toWellFormed().replaceAll("\0", "0"));

const utf8 = (text: string) => Buffer.from(text);

const event = fc.record({
  uuid: fc.uuid(),
  hasGeneratedUuid: fc.boolean(),
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
  getLine(
    seq,
    new EntryWriter(7, 1_767_225_600_000_000, false).event({
      ...rest,
      properties: JSON.stringify(properties),
    }),
  );

const defaultParts = {
  uuid: "0190f0e2-7a11-7b5e-8d4a-5f0c1ab2c3d4",
  hasGeneratedUuid: false,
  name: "seen",
  distinctId: "a",
  time: 1,
  mode: "full" as const,
  elementsChain: null,
  properties: {},
};

test("any event is read as it was written", () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 4 }), (events) => {
      const lines = events.map((each, index) => written(index + 1, each)).join("");
      const { entries, rejected } = decodeEntries(Buffer.from(lines), 0);
      expect(rejected).toEqual([]);
      expect(entries.map((entry) => `${writtenLine(entry as EventEntry)}\n`).join("")).toBe(lines);
      for (const [index, entry] of entries.entries()) {
        const { name, distinctId, time, mode, elementsChain, uuid, hasGeneratedUuid } = events[index]!;
        expect(entry).toMatchObject({ seq: index + 1, projectId: 7, event: name, distinctId, mode, uuid });
        expect(entry).toMatchObject({ timeMicros: time, elementsChain, hasGeneratedUuid });
        expect(getProperties(entry as EventEntry)).toEqual(
          JSON.parse(JSON.stringify(events[index]!.properties)),
        );
      }
    }),
  );
});

test("a line with other spacing or another order is read the same; only entries after the number are returned", () => {
  const own = { uuid: "0190f0e2-7a11-7b5e-8d4a-5f0c1ab2c3d4", event: "seen", distinct_id: "a" };
  const rest = { time: 1, received: 2, historical: true, mode: "full", made_uuid: false };
  const defaults = JSON.stringify({
    seq: 5,
    project_id: 1,
    ...own,
    ...rest,
    elements_chain: null,
    properties: {},
  });
  const other = JSON.stringify({ seq: 5, ...rest, project_id: 1, ...own, properties: {} });
  const spaced = defaults.replace('"event":"seen"', '"event": "seen"');
  const [first, ...others] = [defaults, other, spaced].map(
    (line) => decodeEntries(Buffer.from(`${line}\n`), 4).entries[0],
  );
  expect(first).toMatchObject({ seq: 5, projectId: 1, event: "seen", historical: true });
  for (const entry of others) expect(entry).toEqual(first!);
  expect(decodeEntries(Buffer.from(`${defaults}\n`), 5).entries).toEqual([]);
  // Without a break behind the last one.
  expect(decodeEntries(Buffer.from(`${defaults}\n${other}`), 0).entries).toEqual([first!, first!]);
});

test("of a segment the entries are read, notes among them, and what else it has is passed over", () => {
  const writer = new EntryWriter(7, 1_767_225_600_000_000, true);
  const notes = (["warning", "drop", "person_deleted"] as const).map((kind, index) =>
    getLine(index + 2, writer.note(kind, { type: "some", details: { of: kind } })),
  );
  const lines = [segmentHeader("historical", 1), written(1, defaultParts), ...notes, blockLine(4, 400, 5n)];
  const { entries, rejected } = decodeEntries(Buffer.from(lines.join("")), 0);
  expect(rejected).toEqual([]);
  expect(entries).toMatchObject([
    { kind: "event", seq: 1 },
    ...["warning", "drop", "person_deleted"].map((kind, index) => ({
      kind,
      seq: index + 2,
      projectId: 7,
      type: "some",
      details: { of: kind },
      receivedMicros: 1_767_225_600_000_000,
      historical: true,
    })),
  ]);
  expect(entries).toHaveLength(4);
});

test("escapes that cannot be stored are replaced, in any line, in names and properties", () => {
  const line = (seq: number, distinctId: string, properties: string) =>
    written(seq, { ...defaultParts, distinctId: "?", properties: {} })
      .replace('"?"', `"${distinctId}"`)
      .replace("{}}", `${properties}}`);
  const lines = [
    line(1, "before", '{"a":1}'),
    line(2, "a\\ud800b", '{"a":"\\u0000","b":"\\udc00"}'),
    line(3, "\\ud83e\\udded", '{"a":"\\u00e9"}'),
    line(4, "behind", '{"a":2}'),
  ];
  const { entries, rejected } = decodeEntries(Buffer.from(lines.join("")), 0);
  expect(rejected).toEqual([]);
  const events = entries as EventEntry[];
  expect(events.map(({ distinctId }) => distinctId)).toEqual(["before", "a\ufffdb", "🧭", "behind"]);
  expect(events.map(getProperties)).toEqual([{ a: 1 }, { a: "\ufffd", b: "\ufffd" }, { a: "é" }, { a: 2 }]);
});

test.each([
  ["no uuid", (line: string) => line.replace(/[0-9a-f-]{36}/, "0")],
  ["a cut line", (line: string) => line.slice(0, -9)],
  ["a control character", (line: string) => line.replace("seen", "se\u0001en")],
  ["an invalid number", (line: string) => line.replace('"time":1', '"time":1x')],
  ["a number that is not there", (line: string) => line.replace('"time":1', '"time":')],
  ["a sign alone", (line: string) => line.replace('"time":1', '"time":-')],
  ["a number with leading zeros", (line: string) => line.replace('"time":1', '"time":01')],
])("rejected: %s", (_, spoil) => {
  const uuid = "0190f0e2-7a11-7b5e-8d4a-5f0c1ab2c3d4";
  const line = new EntryWriter(1, 2, false).event({
    uuid,
    hasGeneratedUuid: false,
    name: "seen",
    distinctId: "a",
    time: 1,
    mode: "full",
    elementsChain: null,
    properties: '{"a":1}',
  });
  const spoilt = `{"seq":1,${spoil(line)}`;
  expect(decodeEntries(Buffer.from(`${spoilt}\n`), 0)).toEqual({ entries: [], rejected: [spoilt] });
});

test("what is corrupt before its properties is read as by those who parse all of it, or rejected by both", () => {
  const corruption = fc.record({
    place: fc.nat({ max: 999_999 }),
    bytes: fc.oneof(
      fc.uint8Array({ maxLength: 2 }),
      fc.constantFrom(...["0", "0", "-", "1", '"', "\\", ",", "true", "false", "null", "}", " "].map(utf8)),
    ),
    removed: fc.constantFrom(0, 0, 0, 1, 2, 5),
  });
  fc.assert(
    fc.property(event, fc.array(corruption, { minLength: 1, maxLength: 2 }), (one, corruptions) => {
      let line = Buffer.from(written(1, one)).subarray(0, -1);
      const properties = line.subarray(line.indexOf(',"properties":'));
      let envelope = line.subarray('{"seq":1,'.length, line.length - properties.length);
      for (const { place, bytes, removed } of corruptions) {
        const at = place % envelope.length;
        envelope = Buffer.concat([envelope.subarray(0, at), bytes, envelope.subarray(at + removed)]);
      }
      if (envelope.length === 0 || envelope.includes("\n")) return;
      line = Buffer.concat([utf8('{"seq":1,'), envelope, properties]);
      // The space is none of the writer's.
      const slow = Buffer.concat([utf8('{"seq":1 ,'), envelope, properties]);
      const { entries, rejected } = decodeEntries(Buffer.concat([line, utf8("\n")]), 0);
      const parsed = decodeEntries(Buffer.concat([slow, utf8("\n")]), 0);
      expect(entries).toEqual(parsed.entries);
      expect(rejected).toHaveLength(parsed.rejected.length);
    }),
    { numRuns: 4_000 },
  );
});
