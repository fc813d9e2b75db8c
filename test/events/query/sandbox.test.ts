/** Two locks keep operators' statements inside the views of their project; each is tried without the other's help. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { DuckDBConnection } from "@duckdb/node-api";
import fc from "fast-check";
import { StatementFailedError, StatementRejectedError } from "../../../src/events/duckdb/statement-errors.ts";
import { parseStatement } from "../../../src/events/query/parse.ts";
import { runQuery } from "../../../src/events/query/run-query.ts";
import { TestStores } from "../../support/event-store.ts";

const secret = "hidden-from-everybody";
let stores: TestStores;
let connection: DuckDBConnection;
/** Folders and files whose names differ from what is asked for by one letter that only one side folds. */
let folder: string;

beforeAll(async () => {
  stores = await TestStores.open();
  await stores.load([
    { event: "signup", distinctId: "ann", properties: { n: 1 } },
    { project: 2, event: secret, distinctId: "bob" },
  ]);
  await stores.mirror.follow();
  connection = await stores.database.connect();
  folder = join(stores.folder, "files");
  mkdirSync(folder);
});
afterAll(async () => {
  connection.closeSync();
  await stores[Symbol.asyncDispose]();
});

/** Letters that JavaScript, Unicode or a file system make one of, and DuckDB does not, or the other way round. */
const folds: readonly [string, string][] = [
  ["\u212A", "k"],
  ["\u212A", "K"],
  ["\u017F", "s"],
  ["\u017F", "S"],
  ["\u2126", "\u03C9"],
  ["\u212B", "\u00E5"],
  ["\u00C5", "\u00E5"],
  ["\u00C9", "\u00E9"],
  ["E\u0301", "\u00E9"],
  ["e\u0301", "\u00E9"],
  ["\u0410", "\u0430"],
  ["\u0410", "A"],
  ["\uFF21", "\uFF41"],
  ["\uFF21", "a"],
  ["\u1E9E", "\u00DF"],
  ["\u1E9E", "ss"],
  ["\u0130", "i"],
  ["\u0130", "i\u0307"],
  ["\u0131", "I"],
  ["\u2160", "\u2170"],
  ["\u{10400}", "\u{10428}"],
  ["\u24B6", "\u24D0"],
  ["\u01C4", "\u01C6"],
  ["\u01C5", "\u01C6"],
  ["\u03A3", "\u03C2"],
  ["\uFB01", "fi"],
  ["\u00AD", ""],
  ["\u200D", ""],
  ["\u0000", ""],
];

/** Where a name stands in a statement: what is declared, and what is asked for. */
const positions: readonly ((declared: string, asked: string) => string)[] = [
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM "${a}"`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM '${a}'`,
  (d, a) => `WITH "${d}"(x) AS (SELECT 1) FROM "${a}"`,
  (d, a) => `WITH RECURSIVE "${d}" AS (SELECT 1 UNION ALL SELECT * FROM "${a}") SELECT * FROM "${d}"`,
  (d, a) => `WITH RECURSIVE "${d}" AS (SELECT * FROM "${a}") SELECT * FROM "${d}"`,
  (d, a) => `WITH "${d}" AS MATERIALIZED (SELECT 1) SELECT * FROM "${a}"`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM (SELECT * FROM "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT (SELECT max(x) FROM "${a}" t(x))`,
  (d, a) => `WITH "${d}" AS (SELECT 1 AS x) SELECT 1 IN (SELECT x FROM "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT EXISTS (FROM "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM events, "${a}"`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM events LEFT JOIN "${a}" ON true`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM events, LATERAL (SELECT * FROM "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT 1 UNION ALL SELECT * FROM "${a}"`,
  (d, a) => `WITH "${d}" AS (SELECT 1), y AS (SELECT * FROM "${a}") SELECT * FROM y`,
  (d, a) => `WITH y AS (WITH "${d}" AS (SELECT 1) SELECT * FROM "${a}") SELECT * FROM y`,
  (d, a) => `SELECT * FROM (WITH "${d}" AS (SELECT 1) SELECT * FROM "${d}") x, "${a}"`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM events WHERE seq > ALL (SELECT * FROM "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT count(*) FROM "${a}" GROUP BY ALL HAVING count(*) > 0`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT 1 ORDER BY (SELECT count(*) FROM "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT list_transform([1], x -> (SELECT count(*) FROM "${a}"))`,
  (d, a) => `WITH "${d}" AS (SELECT 1) PIVOT "${a}" ON event`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM (UNPIVOT "${a}" ON COLUMNS(*))`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM (DESCRIBE "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) SELECT * FROM (SUMMARIZE "${a}")`,
  (d, a) => `WITH "${d}" AS (SELECT 1) TABLE "${a}"`,
  (d, a) => `SELECT * FROM events AS "${d}", "${a}"`,
  (d, a) => `SELECT * FROM (SELECT 1) AS "${d}", "${a}"`,
  (d, a) => `SELECT 1 AS "${d}", (SELECT count(*) FROM "${a}")`,
];

/** How the secret may be kept in a file whose name holds the letter. */
const files: readonly ((stem: string) => [name: string, content: string | Buffer])[] = [
  (stem) => [`${stem}.json`, JSON.stringify({ text: secret })],
  (stem) => [`${stem}.ndjson`, JSON.stringify({ text: secret })],
  (stem) => [`${stem}.csv`, `text\n${secret}\n`],
  (stem) => [`${stem}.csv.gz`, gzipSync(`text\n${secret}\n`)],
];

/** The tables of a statement, by DuckDB's own reading of it. */
async function getTables(sql: string): Promise<string[]> {
  const rows = await connection.runAndReadAll("SELECT json_serialize_sql($1::VARCHAR)", [sql]);
  const found: string[] = [];
  const walk = (node: unknown, common: ReadonlySet<string>): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) {
      for (const part of node) walk(part, common);
      return;
    }
    const { type, catalog_name, schema_name, table_name, cte_map } = node as Record<string, unknown>;
    const own = (cte_map as { map?: { key: string }[] } | undefined)?.map?.map(({ key }) => key) ?? [];
    const all = new Set([...common, ...own]);
    if (type === "BASE_TABLE" && !(catalog_name === "" && schema_name === "" && all.has(String(table_name))))
      found.push(`${catalog_name}.${schema_name}.${table_name}`);
    for (const part of Object.values(node)) walk(part, all);
  };
  walk(JSON.parse(rows.getRows()[0]![0] as string), new Set());
  return found;
}

const ourTables = new Set([
  "temp.main.flagkeep_events",
  "temp.main.flagkeep_persons",
  "temp.main.flagkeep_groups",
]);

/** What runs names no table but ours, whatever was written; undefined when the statement is rejected. */
async function tablesThatRun(sql: string): Promise<string[] | undefined> {
  try {
    return await getTables((await parseStatement(connection, sql)).sql);
  } catch (error) {
    if (error instanceof StatementRejectedError || error instanceof StatementFailedError) return undefined;
    throw error;
  }
}

async function answerTo(sql: string): Promise<string> {
  const own = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax: 1_000_000 };
    const portions = await runQuery(own, sources, { projectId: 1, sql, limit: 100 });
    return Buffer.concat(portions).toString();
  } catch (error) {
    if (error instanceof StatementRejectedError || error instanceof StatementFailedError) return "refused";
    throw error;
  } finally {
    own.closeSync();
  }
}

describe("the first lock: what runs is what was checked", () => {
  for (const [written, folded] of folds) {
    test(`${JSON.stringify(written)} and ${JSON.stringify(folded)}, at ${positions.length} positions`, async () => {
      const broken: string[] = [];
      for (const [one, other] of [
        [written, folded],
        [folded, written],
      ] as const)
        for (const [n, position] of positions.entries()) {
          const [name, content] = files[n % files.length]!(`x${other}y`);
          if (!name.includes("\0")) writeFileSync(join(folder, name), content);
          const declared = join(folder, name.replace(`x${other}y`, `x${one}y`));
          const asked = join(folder, name);
          const sql = position(declared, asked);
          const tables = await tablesThatRun(sql);
          if (tables?.some((table) => !ourTables.has(table))) broken.push(`${sql} -> ${tables}`);
          if ((await answerTo(sql)).includes(secret)) broken.push(`${sql} reads the file`);
        }
      expect(broken).toEqual([]);
    });
  }

  const letter = fc.oneof(
    fc.constantFrom(...folds.flat().filter((text) => text !== "")),
    fc.integer({ min: 0x80, max: 0x2ffff }).map((code) => String.fromCodePoint(code)),
    fc.constantFrom("k", "K", "s", "/", "..", ".json", "*", " ", "''", '""', "%", "\\"),
  );
  const name = fc.array(letter, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(""));

  test("any two names at any position", async () => {
    const cases = fc.record({
      declared: name,
      asked: fc.option(name, { nil: undefined }),
      change: fc.constantFrom("lower", "upper", "nfc", "nfkc", "nfd", "none"),
      position: fc.constantFrom(...positions),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ declared, asked, change, position }) => {
        const changed = {
          lower: declared.toLowerCase(),
          upper: declared.toUpperCase(),
          nfc: declared.normalize("NFC"),
          nfkc: declared.normalize("NFKC"),
          nfd: declared.normalize("NFD"),
          none: declared,
        }[change];
        const tables = (await tablesThatRun(position(declared, asked ?? changed))) ?? [];
        expect(tables.filter((table) => !ourTables.has(table))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  }, 60_000);
});

describe("the second lock: DuckDB touches no file but its own", () => {
  const outside = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd.csv'",
    "SELECT * FROM glob('/etc/*')",
    "COPY (SELECT 1) TO '/tmp/flagkeep-was-here.csv'",
    "ATTACH '/tmp/flagkeep-was-here.db'",
    "EXPORT DATABASE '/tmp/flagkeep-was-here'",
    "INSTALL httpfs",
    "LOAD '/tmp/x.duckdb_extension'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "SET GLOBAL memory_limit = '100GB'",
    "SET temp_directory = '/tmp'",
    "SET allowed_directories = ['/']",
    "SET custom_extension_repository = 'http://127.0.0.1'",
  ];
  for (const sql of outside)
    test(sql, async () => {
      const own = await stores.database.connect();
      try {
        expect(await own.run(sql).then(() => "ran", String)).toMatch(/Permission|disabled|locked|Error/);
      } finally {
        own.closeSync();
      }
    });
});
