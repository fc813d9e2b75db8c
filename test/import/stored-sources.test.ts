/** Files of each source in each form that it has, imported by the executable; the stored events are read back. */

import { afterAll, expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject, type Json, type JsonObject } from "../../src/lib/json/value.ts";
import { writeParquet } from "../support/parquet.ts";
import { flagkeep, temporaryFolder } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import { getLines } from "./samples.ts";
import { type FileForm, type StoredCase, storedCases } from "./sources/stored-cases.ts";

const folder = temporaryFolder();
useServer();
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...args: string[]) {
  const { stdout, stderr, code } = await flagkeep([...args, "--data-dir", server.dataDir, "--json"]);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const writers: Record<FileForm, (path: string, records: readonly JsonObject[]) => void | Promise<void>> = {
  ndjson: (path, records) => writeFileSync(path, getLines(records)),
  csv: (path, records) => writeTable(path, records, ",", (text) => `"${text.replaceAll('"', '""')}"`),
  tsv: (path, records) =>
    writeTable(path, records, "\t", (text) =>
      text.replace(/[\\\t\n\0]/g, (each) => `\\${{ "\t": "t", "\n": "n", "\0": "0" }[each] ?? each}`),
    ),
  parquet: writeParquet,
};

function writeTable(
  path: string,
  records: readonly JsonObject[],
  delimiter: string,
  written: (text: string) => string,
): void {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const cell = (value: Json | undefined) =>
    value === undefined || value === null
      ? delimiter === "\t"
        ? "\\N"
        : ""
      : written(typeof value === "object" ? JSON.stringify(value) : String(value));
  const rows = records.map((record) => columns.map((name) => cell(record[name])).join(delimiter));
  writeFileSync(path, `${[columns.join(delimiter), ...rows].join("\n")}\n`);
}

/** Cells of tables are text. */
function asText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asText);
  if (isJsonObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, asText(inner)]));
  return value === undefined ? undefined : String(value);
}

/** Compares the named parts; an expected undefined means that the name is absent. */
function expectPart(actual: JsonObject, expected: Record<string, unknown>): void {
  const present = Object.entries(expected).filter(([, value]) => value !== undefined);
  expect(actual).toMatchObject(Object.fromEntries(present));
  const absent = Object.keys(expected).filter((name) => expected[name] === undefined);
  expect(absent.filter((name) => Object.hasOwn(actual, name))).toEqual([]);
}

async function load(name: string, form: FileForm, { table = "records", records }: StoredCase) {
  const { id } = await run("projects", "create", `${name} ${form}`);
  mkdirSync(join(folder, `${id}`));
  const path = join(folder, `${id}`, `${table}.${form}`);
  await writers[form](path, records);
  const dry = await run("import", path, "--project", `${id}`, "--dry-run");
  const summary = await run("import", path, "--project", `${id}`);
  const query = async (sql: string) => (await run("query", sql, "--project", `${id}`)).rows;
  return { dry, summary, query };
}

for (const [name, stored] of Object.entries(storedCases))
  for (const form of stored.forms)
    test(`${name}: ${form}`, async () => {
      const { dry, summary, query } = await load(name, form, stored);
      const same = form === "ndjson" || form === "parquet" ? (value: unknown) => value : asText;
      const columns = "event, distinct_id, timestamp, properties, elements_chain";
      const found = await query(`SELECT ${columns} FROM events ORDER BY seq`);
      // Events that the source does not have: links, and groups of Amplitude.
      const isCreated = ({ event, properties }: JsonObject) =>
        (event === "$identify" && Object.keys(properties as JsonObject).join() === "$anon_distinct_id") ||
        (event === "$groupidentify" && name === "amplitude");
      const events = found.filter((event: JsonObject) => !isCreated(event));
      expect(events).toHaveLength(stored.events.length);
      for (const [at, expected] of stored.events.entries()) {
        const { properties, ...others } = same(events[at]) as JsonObject;
        const { properties: wanted, ...rest } = same(expected) as typeof expected;
        expect(others).toMatchObject(rest);
        expectPart(properties as JsonObject, wanted);
      }
      for (const [id, expected] of Object.entries(stored.persons ?? {})) {
        const [person] = await query(
          `SELECT properties FROM persons WHERE list_contains(distinct_ids, '${id}')`,
        );
        expectPart(same(person.properties) as JsonObject, same(expected) as JsonObject);
      }
      expect(summary).toMatchObject(stored.summary ?? { rejected: 0 });
      for (const member of [
        "read",
        "accepted",
        "made",
        "rejected",
        "left_out",
        "not_taken",
        "shared_devices",
      ])
        expect([member, dry[member]]).toEqual([member, summary[member]]);
    });

for (const [name, stored] of Object.entries(storedCases))
  test(`${name}: the same rows in another form are the same events`, async () => {
    const { id } = await run("projects", "create", `${name} again`);
    mkdirSync(join(folder, `${id}`));
    const accepted: [FileForm, number, number][] = [];
    for (const form of [...stored.forms, stored.forms[0]!]) {
      const path = join(folder, `${id}`, `${stored.table ?? "records"}.${form}`);
      await writers[form](path, stored.records);
      const summary = await run("import", path, "--project", `${id}`);
      accepted.push([form, summary.accepted, summary.made]);
    }
    const [, ...others] = accepted;
    expect(others).toEqual(others.map(([form]) => [form, 0, 0]));
  });
