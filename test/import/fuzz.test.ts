/**
 * Files of each source with records that no one would export: no record crashes an import, each is counted once,
 * repetition in any order loads nothing, and no two users become one person. Source: contract, import 1.
 */

import { describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { importAll } from "../../src/import/import-all.ts";
import type { ImportFormat } from "../../src/import/map/formats.ts";
import { AppError } from "../../src/lib/errors.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";
import { temporaryFolder } from "../support/server.ts";
import { MemoryTarget } from "./memory-target.ts";
import { fullRecords } from "./sources/full-records.ts";
import { storedCases } from "./sources/stored-cases.ts";
import { at, type Source, wildSources as sources } from "./wild-sources.ts";

/** Commands that merge by the customer's own order; they are no pairs of records. */
const commands = /^(?:\$identify|\$merge|\$create_alias|\$merge_dangerously|alias)$/;
const isCommand = ({ event, type }: JsonObject) =>
  commands.test(String(event)) || commands.test(String(type));

function getTemplates(name: string, { format, records = [] }: Source): JsonObject[] {
  const full = Object.values(fullRecords).filter((each) => each.format === format);
  const stored = storedCases[name]?.records ?? [];
  return [...records, ...full.map(({ record }) => record), ...stored].filter((each) => !isCommand(each));
}

const users = ["user-1", "user-2", "user-3"];
const placeholders: Json[] = [null, "", "\\N", "(null)", "unknown", 0, "0", "-1", "[object Object]", " "];
const userId = fc.oneof(
  { arbitrary: fc.constantFrom<Json>(...users), weight: 6 },
  { arbitrary: fc.constantFrom(...placeholders), weight: 2 },
  { arbitrary: fc.constantFrom<Json>(17, "device-1", [], {}, true, "é\ud800"), weight: 1 },
);
const deviceId = fc.oneof(
  { arbitrary: fc.constantFrom<Json>("device-1", "device-2"), weight: 6 },
  { arbitrary: fc.constantFrom(...placeholders), weight: 2 },
  { arbitrary: fc.constantFrom<Json>("user-1", 18, ["device-1"], { a: 1 }), weight: 1 },
);
const times: Json[] = [
  at,
  "2024-05-01T10:00:00+02:00",
  "1714557600",
  1714557600,
  1714557600123,
  "1714557600123456",
  "2024",
  "2024122",
  "20240501",
  "0001-01-01 (BC) 00:00:00",
  "never",
  "",
  null,
  -1,
  0,
  1e308,
  1e-7,
  "9".repeat(40),
  "2024-02-30 00:00:00",
  "2024-05-01 25:00",
  true,
  [],
  { a: 1 },
  "\\N",
  "NaN",
  "+1e5",
  "2024-05-01 10:00:00 UTC",
  "2024-05-01 10:00:00.123456789",
  "Wed, 01 May 2024 10:00:00 GMT",
  "99999-01-01",
];
const time = fc.oneof(
  { arbitrary: fc.constant<Json>(at), weight: 3 },
  { arbitrary: fc.constantFrom(...times), weight: 2 },
);
const unusualValues: Json[] = [
  null,
  "",
  "\\N",
  "NULL",
  "(null)",
  0,
  -1,
  -0,
  1e308,
  2 ** 53 + 2,
  true,
  false,
  [],
  {},
  [[]],
  [null],
  "9".repeat(40),
  "1e999",
  "-0",
  "007",
  "12.50",
  "\u0000",
  "a\u0000\u0000",
  "\\x00",
  "\ud800",
  "e\u0301",
  "{",
  "[",
  '{"a":1}',
  "{a,b}",
  '{a,"b c"}',
  "['a','it\\'s']",
  "['",
  '{"a',
  '["a"]',
  "[1,2",
  "{}",
  "[]",
  "__proto__",
  "constructor",
  "toString",
  "https://[::1",
  "//x",
  "/p?utm_source=a",
  "http://x.example/?gclid=1",
  "1920x1080",
  "0x0",
  "DE",
  "ZZ",
  "xx",
  "255",
  "EMPTY",
  "true",
  "1",
  { list: [] },
  { list: [{ element: { key: "a", value: null } }] },
  [{ key: "a", value: { int_value: "1" } }],
  [{ key: 1, value: 2 }],
  { $set: 1 },
  { $set: null, $unset: ["a"] },
  { __proto__: 1, a: { b: { c: [] } } },
];
const unusualValue = fc.oneof(
  { arbitrary: fc.constantFrom(...unusualValues), weight: 6 },
  { arbitrary: fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>, weight: 1 },
);
const lines = fc.constantFrom("[]", "7", "null", "{", '{"a":', '"x"', "{}", '{"a":1}', "nonsense");

/** The object that has the last member of a path. */
function getHolder(record: Json, path: readonly string[]): JsonObject | undefined {
  let holder: Json | undefined = record;
  for (const name of path.slice(0, -1))
    holder = typeof holder === "object" && holder !== null ? (holder as JsonObject)[name] : undefined;
  return typeof holder === "object" && holder !== null ? (holder as JsonObject) : undefined;
}

function put(record: JsonObject, path: string, value: Json): void {
  const names = path.split(".");
  const holder = getHolder(record, names);
  if (holder !== undefined) holder[names.at(-1)!] = value;
}

function pathsIn(value: Json, depth = 3): string[][] {
  if (depth === 0 || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    [name],
    ...pathsIn(inner as Json, depth - 1).map((path) => [name, ...path]),
  ]);
}

function recordOf(name: string, source: Source): fc.Arbitrary<string> {
  const templates = getTemplates(name, source);
  const chosen = fc.record({
    template: fc.constantFrom(...templates),
    user: userId,
    device: deviceId,
    time,
    event: fc.constantFrom<Json>("a", "b", "page_view", 5, null, "$pageview"),
    id: fc.constantFrom<Json>("id-1", "id-2", "0190a000-0000-4000-8000-000000000009", 7, null, "\\N"),
    named: fc.subarray(["user", "device", "time", "event", "id"], { minLength: 1 }),
    changes: fc.array(fc.tuple(fc.nat(), fc.option(unusualValue, { nil: undefined })), { maxLength: 4 }),
  });
  return chosen.map(({ template, named, changes, ...values }) => {
    const copy = structuredClone(template);
    const has = (part: string) => named.includes(part);
    if (source.user !== undefined) put(copy, source.user, has("user") ? values.user : "user-1");
    if (source.device !== undefined) put(copy, source.device, has("device") ? values.device : "device-1");
    put(copy, source.time, has("time") ? values.time : at);
    if (has("event")) put(copy, source.name, values.event);
    if (source.id !== undefined && has("id")) put(copy, source.id, values.id);
    const paths = pathsIn(copy);
    for (const [at, value] of changes) {
      const path = paths[at % paths.length]!;
      const holder = getHolder(copy, path);
      if (holder === undefined) continue;
      if (value === undefined) delete holder[path.at(-1)!];
      else holder[path.at(-1)!] = structuredClone(value);
    }
    return isCommand(copy) ? "{}" : JSON.stringify(copy);
  });
}

/** The records as a table, whose columns are all members; nested values are JSON. */
function getTable(lines: readonly string[]): string {
  const records = lines.map((line) => JSON.parse(line) as JsonObject);
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const cell = (value: Json | undefined) => {
    if (value === undefined || value === null || value === "\\N") return value === "\\N" ? value : "";
    return quoted(typeof value === "object" ? JSON.stringify(value) : String(value));
  };
  const rows = records.map((record) => columns.map((name) => cell(record[name])).join());
  return [columns.map(quoted).join(), ...rows].join("\n");
}

const nothing = () => undefined;

interface Written {
  lines: readonly string[];
  isTable: boolean;
}

async function load(folder: string, target: MemoryTarget, { lines, isTable }: Written, format: ImportFormat) {
  const path = join(folder, isTable ? "records.csv" : "records.ndjson");
  writeFileSync(path, `${isTable ? getTable(lines) : lines.join("\n")}\n`);
  // Snapshots without a time have that of the file.
  utimesSync(path, 1_714_557_600, 1_714_557_600);
  const reasons: string[] = [];
  const { counts } = await importAll({
    source: path,
    projectId: 1,
    dataDir: folder,
    stateFolder: join(folder, "state"),
    format,
    fields: [],
    isLinking: true,
    isDryRun: false,
    isResumed: false,
    maxRejects: 1_000,
    onBytes: nothing,
    onRecords: nothing,
    onFormat: nothing,
    onReject: ({ reason }) => reasons.push(reason),
    target,
  });
  expect(reasons).toHaveLength(counts.rejected);
  expect(reasons.filter((reason) => !/^[a-z_]+$/.test(reason))).toEqual([]);
  return counts;
}

const sum = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((a, b) => a + b, 0);

describe("wild records", () => {
  for (const [name, source] of Object.entries(sources))
    test(name, async () => {
      const record = recordOf(name, source);
      const line = fc.oneof({ arbitrary: record, weight: 30 }, { arbitrary: lines, weight: 1 });
      // The first line determines the file type.
      const document = fc
        .tuple(record, fc.array(line, { minLength: 15, maxLength: 40 }), record)
        .map(([first, rest, last]): Written => ({ lines: [first, ...rest, last], isTable: false }));
      const table = fc
        .array(record, { minLength: 15, maxLength: 40 })
        .map((lines): Written => ({ lines, isTable: true }));
      const file = source.isTree ? document : fc.oneof(document, table);
      const folder = temporaryFolder();
      let number = 0;
      await fc.assert(
        fc.asyncProperty(file, fc.boolean(), async (written, isAuto) => {
          const own = join(folder, `${++number}`);
          mkdirSync(own);
          const target = new MemoryTarget();
          if (isAuto) {
            // Whatever it is taken for, or why it is rejected.
            const auto = load(own, new MemoryTarget(), written, "auto");
            await auto.catch((error) => expect(error).toBeInstanceOf(AppError));
          }
          const first = await load(own, target, written, source.format);
          expect(first.read).toBe(written.lines.length);
          const done = first.accepted + first.duplicate + first.rejected + sum(first.left_out);
          if (source.hasMany) expect(first.rejected).toBeLessThanOrEqual(first.read);
          else if (!source.isSnapshot) expect(done).toBe(first.read);
          const all = first.accepted + first.duplicate;
          const reversed = { ...written, lines: written.lines.toReversed() };
          for (const each of source.isSnapshot ? [written] : [written, reversed]) {
            const again = await load(own, target, each, source.format);
            const created = source.hasStates && each === reversed ? again.made : 0;
            expect(again).toMatchObject({
              accepted: 0,
              duplicate: all,
              made: created,
              read: first.read,
              rejected: first.rejected,
              left_out: first.left_out,
            });
          }
          if (!source.hasPersons)
            expect(new Set(users.map((user) => target.personOf(user))).size).toBe(users.length);
          rmSync(own, { recursive: true });
        }),
        { numRuns: 6 },
      );
    });
});
