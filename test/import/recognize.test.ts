/** Files that cannot become events are rejected with what they are. Source: contract, import 1.9. */

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { detectFormat, isTotals, nearestFormats } from "../../src/import/map/formats.ts";
import { detectFileType } from "../../src/import/read/file-type.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { executable, flagkeep, initializedDirectory, temporaryFolder } from "../support/server.ts";

const initialized = initializedDirectory();
const folder = temporaryFolder();

async function load(name: string, content: string, ...args: string[]) {
  const path = join(folder, name);
  writeFileSync(path, content);
  const { dataDir } = await initialized;
  return { path, ...(await flagkeep(["import", path, "--data-dir", dataDir, ...args])) };
}

describe("a file of no known format", () => {
  test("is described by its members, the nearest formats and the missing members", async () => {
    const { path, ...answer } = await load("a.ndjson", '{"event_type":"x","when":"2024-01-01"}\n{"b":1}\n');
    expect(answer).toEqual({
      code: 1,
      stdout: "",
      stderr:
        `flagkeep: ${path} was not recognized: its first record has the members event_type, when. ` +
        "Nearest formats: amplitude (lacks user_id or device_id or amplitude_id); umami (lacks website_id, session_id, " +
        "created_at); events (lacks event, distinct_id, timestamp). " +
        "Name the format with --format, or the fields of an event with --map.\n",
    });
    const mapped = ["--map", "event=event_type", "--map", "timestamp=when", "--map", "distinct_id='u'"];
    expect(await load("a.ndjson", '{"event_type":"x","when":"2024-01-01"}', ...mapped)).toMatchObject({
      code: 0,
    });
  }, 60_000);

  test("with nothing in common is nearest to plain events", () => {
    expect(nearestFormats({ kind: "metric" }, 3)[0]).toEqual({
      format: "events",
      lacks: ["event", "distinct_id", "timestamp"],
    });
    expect(nearestFormats({ event: "e", properties: { a: 1 } }, 1)).toEqual([
      { format: "mixpanel", lacks: ["properties.time"] },
    ]);
  });

  test("in a folder does not keep the others from being loaded", async () => {
    const { dataDir } = await initialized;
    const files = temporaryFolder();
    writeFileSync(join(files, "1.csv"), "user,action\nu,buy\n");
    writeFileSync(join(files, "2.ndjson"), '{"event":"e","distinct_id":"u","timestamp":"2024-01-01"}');
    const { code, stdout, stderr } = await flagkeep(["import", files, "--json", "--data-dir", dataDir]);
    expect({ code, summary: JSON.parse(stdout) }).toMatchObject({ code: 1, summary: { accepted: 1 } });
    expect(stderr).toContain("1.csv was not recognized: its first record has the members user, action.");
  }, 60_000);
});

for (const [name, dump] of [
  ["PostgreSQL", "--\n-- PostgreSQL database dump\n--\n\nCOPY events (event) FROM stdin;\ne\n\\.\n"],
  ["MySQL", "/*!40101 SET NAMES utf8 */;\nINSERT INTO `events` VALUES (1,'e'),(2,'e');\n"],
  ["one statement, cut off", "INSERT INTO events (event, distinct_id) VALUES ('a'"],
  ["SQLite", "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n"],
] as const)
  test(`an SQL dump is rejected: ${name}`, () => {
    expect(() => detectFileType("a.sql", Buffer.from(dump))).toThrow(
      "a.sql is an SQL dump: export the table",
    );
  });

test("a table whose header resembles SQL is read", () => {
  for (const header of ["use,set,copy\n1,2,3\n", "--a,b\n1,2\n", "insert into,b\n1,2\n", "set by,b\n1,2\n"])
    expect(detectFileType("a.csv", Buffer.from(header))).toEqual({ kind: "csv" });
});

describe("totals", () => {
  const reports: JsonObject[] = [
    { date: "2024-01-01", visitors: 1, pageviews: 2 },
    { date: "2024-01-01", name: "signup", link_url: "", visitors: 3, events: 5 },
    { name: "Google", visitors: "4", bounce_rate: "20" },
    { name: "/pricing", unique_entrances: 4, total_entrances: 5 },
    { "Page title and screen class": "Home", Views: 3, "Active users": 2 },
    { "Nth day": "0000", "Active users": "7" },
    { "Event name": "page_view", "Event count": 7, "Total users": 1 },
    { x: "/", y: 5 },
    { pageviews: [{ x: "2024-01-01", y: 5 }], sessions: [{ x: "2024-01-01", y: 5 }] },
    { views: 1, visitors: 2, visits: 2, bounces: 0, totaltime: 5 },
    { computed_at: "2024-01-01", headers: ["$metric"], series: { a: { "2024-01-01": 1 } } },
    { legend_size: 1, data: { series: ["2024-01-01"], values: { signup: { "2024-01-01": 35 } } } },
    { meta: { dates: ["2024-01-01"] }, data: { "2024-01-01": { steps: [] } } },
    { "2024-01-01": { counts: [1, 2], first: 3 } },
    { Event: "Signup", "2024-01-01": 5, "2024-01-02": 6 },
    { Date: "2024-01-01", Event: "Signup", Value: 5 },
    { Date: "2024-01-01", "Signed Up - Total": "1,204" },
  ];
  for (const record of reports)
    test(JSON.stringify(record), () => expect(detectFormat(record)).toBe("totals"));
  const others: JsonObject[] = [
    { date: "2024-01-01", user: "u", value: 1 },
    { user_id: "u", visits: 3 },
    { email: "a@example.com", sessions: 4 },
    { date: "2024-01-01", action: "buy" },
    { kind: "metric", value: 1 },
    {},
  ];
  for (const record of others)
    test(`not ${JSON.stringify(record)}`, () => expect(isTotals(record)).toBe(false));

  test("are rejected, also after the comments of GA4's interface", async () => {
    const sentence = "holds totals per day, no events: it cannot be loaded.";
    const table = "date,visitors,pageviews\n2024-01-01,1,2\n";
    expect(await load("visitors.csv", table)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(sentence),
    });
    const comments = "# -------\n# Pages, by title\n# Account: A; B\n# -------\n\n";
    const ga4 = await load("ga4.csv", `${comments}Page title,Views,Active users\nHome,1,2\n`);
    expect(ga4).toMatchObject({ code: 1, stderr: expect.stringContaining(sentence) });
  }, 60_000);
});

test("a table after comments is read, with the right line numbers", async () => {
  const table = "# exported by us\n\nevent,distinct_id,timestamp\ne,u,2024-01-01\ne,u\n";
  const { stdout } = await load("comments.csv", table, "--json", "--dry-run");
  expect(JSON.parse(stdout)).toMatchObject({ read: 2, rejected: 1 });
  const { stderr } = await load("comments.csv", table, "--dry-run");
  expect(stderr).toContain("line 5: wrong_column_count");
}, 60_000);

test("a lookup file alone is rejected with its counterpart's name, also on standard input", async () => {
  const { dataDir } = await initialized;
  const merges = '{"amplitude_id":1,"merged_amplitude_id":2,"merge_event_time":"2024-01-01"}';
  const sentence = "It belongs with Amplitude's export of events: put both in one folder.";
  expect(await load("merges.json", merges)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(sentence),
  });
  const { path } = await load("merges.json", merges);
  const piped = Bun.spawnSync([executable, "import", "-", "--data-dir", dataDir], { stdin: Bun.file(path) });
  expect(piped.exitCode).toBe(1);
  expect(piped.stderr.toString()).toContain(sentence);
}, 60_000);
