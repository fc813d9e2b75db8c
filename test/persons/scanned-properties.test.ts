/** Persons become the same whether the properties of their events are parsed or found by the scanner, portion after portion. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import type { JournalEvent, JournalItem } from "../../src/journal/entry.ts";
import { parseExactJson } from "../../src/lib/json/exact.ts";
import { listWarnings } from "../../src/persons/warnings.ts";
import { MemberScanner, ParsedMembers } from "../../src/scan/members.ts";
import { event, TestPersons } from "./support.ts";

/** Texts that look alike: as characters and as bytes, in their length, or once their escapes are read. */
const alike = [
  ['"é"', '"\\u00e9"', '"Ã©"', '"è"', '"ab"'],
  ["1", "1.0", "1e0", "0", "-0", "2"],
  ["null", "true", '"tr"', '""', '"\\n"', '"\\u000a"'],
  ['"x"', `"${"x".repeat(300)}"`, `"${"x".repeat(299)}y"`, '{"b":1,"a":[1.0]}', "12345678901234567890"],
];
/** Names with too many distinct values: the scanner numbers no others. */
const unnumbered = ["$referrer", "utm_source"];
const names = [...unnumbered, "$browser", "$os_name", "plan"];
const aValue = (name: string) => fc.constantFrom(...alike[names.indexOf(name) % alike.length]!);
const member = fc.constantFrom(...names).chain((name) => fc.tuple(fc.constant(name), aValue(name)));
const members = fc.uniqueArray(member, { maxLength: 2, selector: ([name]) => name });
const written = (list: readonly (readonly [string, string])[]) =>
  `{${list.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;

const seldom = <Value>(what: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: what });

const sent = fc.record({
  members,
  set: seldom(members),
  setOnce: seldom(members),
  unset: seldom(fc.constantFrom("$browser", "$initial_browser", "plan")),
  library: fc.constantFrom(null, null, null, '"web"', '"posthog-node"'),
  partner: seldom(fc.constantFrom("a", "b", "c")),
  distinctId: fc.constantFrom("a", "a", "b"),
  minutes: fc.nat(5),
  historical: fc.boolean(),
  /** The portion, and the step, end behind this event. */
  ends: fc.constantFrom("neither", "neither", "portion", "step"),
});
type Sent = typeof sent extends fc.Arbitrary<infer Value> ? Value : never;

function toDisplayString({ members, set, setOnce, unset, library, partner }: Sent): string {
  const own: [string, string][] = [...members];
  if (library !== null) own.push(["$lib", library]);
  if (partner !== null) own.push(["$anon_distinct_id", JSON.stringify(partner)]);
  if (set !== null) own.push(["$set", written(set)]);
  if (setOnce !== null) own.push(["$set_once", written(setOnce)]);
  if (unset !== null) own.push(["$unset", JSON.stringify([unset])]);
  return written(own);
}

interface Created {
  event: JournalEvent;
  text: string;
  ends: Sent["ends"];
}

function created(one: Sent, projectId: number): Created {
  const { partner, distinctId, minutes, historical, ends } = one;
  const name = partner === null ? "seen" : "$identify";
  const timeMicros = 1.7e15 + minutes * 60e6;
  return {
    event: event({ projectId, event: name, distinctId, timeMicros, historical }),
    text: toDisplayString(one),
    ends,
  };
}

/** A lane's events in steps of portions. */
function apply(
  people: TestPersons,
  all: readonly Created[],
  read: (texts: string[]) => JournalEvent["properties"][],
) {
  const isHistorical = all[0]?.event.historical === true;
  for (let start = 0; start < all.length; ) {
    const step = people.store.start(isHistorical ? "historical" : "realtime");
    let end = start;
    do {
      const from = end;
      do end += 1;
      while (end < all.length && all[end - 1]!.ends === "neither");
      const portion = all.slice(from, end);
      const properties = read(portion.map(({ text }) => text));
      const items = portion.map(
        ({ event }, index): JournalItem => ({ ...event, properties: properties[index]! }),
      );
      step.add({ items, duplicates: [] });
    } while (end < all.length && all[end - 1]!.ends !== "step");
    step.commit(all[end - 1]!.event.seq);
    start = end;
  }
}

/** Everything that is stored of a project's persons, but which row is whose. */
function getRows({ db }: TestPersons, projectId: number) {
  const persons = db.$client.query("SELECT * FROM person WHERE project_id = ? ORDER BY uuid").all(projectId);
  const ids = db.$client
    .query("SELECT * FROM distinct_id WHERE project_id = ? ORDER BY distinct_id")
    .all(projectId);
  return { persons, ids, warnings: listWarnings(db, projectId) };
}

test("every row is the same", () => {
  using scanned = new TestPersons();
  using parsed = new TestPersons();
  const scanner = new MemberScanner();
  const many = Array.from({ length: 300 }, (_, n) =>
    Buffer.from(written(unnumbered.map((name) => [name, `"value ${n}"`]))),
  );
  expect(scanner.read(many).at(-1)?.number(0)).toBe(0);
  const scan = (texts: string[]) =>
    scanner.read(texts.map((text) => Buffer.from(text))).map((found) => found!);
  const parse = (texts: string[]) =>
    texts.map((text) => new ParsedMembers(parseExactJson(text) as Record<string, unknown>));
  let projectId = 0;
  fc.assert(
    fc.property(fc.array(sent, { minLength: 1, maxLength: 20 }), (all) => {
      projectId += 1;
      const events = all.map((one) => created(one, projectId));
      for (const isHistorical of [false, true]) {
        const lane = events.filter(({ event }) => event.historical === isHistorical);
        apply(scanned, lane, scan);
        apply(parsed, lane, parse);
      }
      expect(getRows(scanned, projectId)).toEqual(getRows(parsed, projectId));
    }),
    { numRuns: 400 },
  );
});

test("a first value that was unset is written again by the same kind of event", () => {
  using people = new TestPersons();
  const scanner = new MemberScanner();
  const texts = [
    '{"$browser":"a"}',
    '{"$browser":"a"}',
    '{"$unset":["$initial_browser"]}',
    '{"$browser":"b"}',
  ];
  const step = people.store.start("realtime");
  const items = scanner
    .read(texts.map((text) => Buffer.from(text)))
    .map((properties): JournalItem => ({ ...event(), properties: properties! }));
  step.add({ items, duplicates: [] });
  step.commit(items.at(-1)!.seq);
  expect(people.properties("a")).toEqual({ $browser: "b", $initial_browser: "b" });
});
