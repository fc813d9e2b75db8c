/** Valid and invalid invocations of every command; a command without any fails the tests. */

import { accountInvocations } from "./account-invocations.ts";
import { clusterInvocations } from "./cluster-invocations.ts";
import { type Invocation, inProject, missing, projectNotANumber, unknownProject } from "./invocation.ts";
import { productInvocations } from "./product-invocations.ts";

const exported = (subject: string): Invocation => ({
  args: ({ folder }) => [`${folder}/${subject}.ndjson`, "--project", "1"],
  isAlone: true,
  wrong: [
    { args: ["--json"], code: 2, says: "requires a file" },
    { args: ["--format", "xml"], code: 2, says: "Allowed choices" },
    { args: ["/tmp/x.csv", "--format", "parquet", "--project", "1"], code: 2, says: "extension .csv" },
    { args: ["/tmp/x.ndjson.gz", "--project", "1"], code: 2, says: "extension .gz" },
    unknownProject,
  ],
});
/** Commands that other tests run, and the files of these tests. */
export const triedElsewhere: Record<string, string> = {
  "persons recreate": "test/serve/sqlite-corruption.test.ts",
  serve: "test/cli/cli.test.ts",
  completions: "test/cli/completions.test.ts",
  mcp: "test/mcp/executable.test.ts",
  "experiments results": "test/experiments/lifecycle.test.ts",
  "surveys results": "test/surveys/results.test.ts",
  "flags usage": "test/operations/flags.test.ts",
  "flags blast-radius": "test/operations/flags.test.ts",
  "flags revert": "test/operations/flags.test.ts",
  "flags remove-role": "test/operations/flags.test.ts",
  "dashboards delete": "test/operations/groups.test.ts",
  "insights show": "test/operations/groups.test.ts",
  "insights delete": "test/operations/groups.test.ts",
  "imports list": "test/operations/groups.test.ts",
  "imports get": "test/operations/groups.test.ts",
  "features enroll": "test/early-access/features.test.ts",
};

const unknownFlag = { args: inProject("nope"), code: 1, says: "Flag nope does not exist." } as const;

export const invocations: Record<string, Invocation> = {
  init: {
    args: ({ folder }) => ["--email", "new@example.com", "--data-dir", `${folder}/new`],
    wrong: [
      { args: [], code: 1, says: "in use" },
      { args: ["extra"], code: 2, says: "too many arguments" },
    ],
  },
  "flags list": { args: () => inProject(), wrong: [unknownProject, projectNotANumber] },
  "flags get": {
    args: () => inProject("first"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }, missing("key")],
  },
  "flags create": {
    args: () => inProject("second", "--rollout", "10", "--tag", "new"),
    wrong: [
      { args: inProject("not a key"), code: 2, says: "Only letters" },
      { args: inProject("third", "--rollout", "200"), code: 2, says: "0 to 100" },
    ],
  },
  "flags set": {
    args: () => inProject("switched-on", "--rollout", "30", "--on", "--payload", '{"a":1}'),
    wrong: [
      { args: inProject("nope", "--on"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first"), code: 2, says: "Nothing to change" },
      { args: inProject("first", "--on", "--off"), code: 2, says: "contradict" },
      { args: inProject("first", "--rollout", "101"), code: 2, says: "from 0 to 100" },
      { args: inProject("first", "--variant", "blue=70"), code: 2, says: "sum to 100" },
      missing("key"),
    ],
  },
  "flags delete": {
    args: () => inProject("deleted-now"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }, missing("key")],
  },
  "flags restore": {
    args: () => inProject("deleted-before"),
    wrong: [
      { args: inProject("first"), code: 1, says: "Deleted flag first does not exist." },
      missing("key"),
    ],
  },
  "flags enable": {
    args: () => inProject("switched-on"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }],
  },
  "flags disable": {
    args: () => inProject("switched-off"),
    wrong: [{ args: inProject("nope"), code: 1, says: "Flag nope does not exist." }],
  },
  "flags export": { args: () => inProject(), wrong: [unknownProject] },
  "flags import": {
    args: ({ folder }) => inProject(`${folder}/flags.yaml`),
    wrong: [{ args: inProject("/nowhere.yaml"), code: 1, says: "/nowhere.yaml" }, missing("file")],
  },
  "flags explain": {
    args: () => inProject("first", "--distinct-id", "ann", "--filters", '{"groups": []}'),
    wrong: [
      { args: inProject("first"), code: 2, says: "--distinct-id" },
      { args: inProject("first", "--distinct-id", "ann", "--filters", "{"), code: 2, says: "JSON" },
    ],
  },
  "flags schedule": {
    args: () => inProject("first", "--at", "2099-01-02T03:04:05Z", "--off", "--user", "owner@example.com"),
    wrong: [
      { args: inProject("nope", "--at", "2099-01-02", "--on"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first", "--on"), code: 2, says: "--at" },
      { args: inProject("first", "--at", "soon", "--on"), code: 2, says: "a date and time" },
      {
        args: inProject("first", "--at", "2099-01-02", "--on", "--user", "nobody@example.com"),
        code: 1,
        says: "nobody@example.com is not a member",
      },
      {
        args: inProject("first", "--at", "2001-01-02", "--on", "--user", "owner@example.com"),
        code: 2,
        says: "must be in the future",
      },
      {
        args: inProject("first", "--at", "2099-01-02", "--user", "owner@example.com"),
        code: 2,
        says: "Nothing to change",
      },
      {
        args: inProject("first", "--at", "2099-01-02", "--on", "--user", "bob@example.com"),
        code: 1,
        says: "bob@example.com may not edit",
      },
      { args: [], code: 2, says: "--at" },
    ],
  },
  "flags rollout": {
    args: () =>
      inProject("first", "--at", "2099-01-02", "--condition-set", "1", "--user", "owner@example.com"),
    wrong: [
      { args: inProject("nope", "--at", "2099-01-02"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first"), code: 2, says: "--at" },
      {
        args: inProject("first", "--at", "2099-01-02", "--steps", "50,25"),
        code: 2,
        says: "up to 20 rising percentages",
      },
      { args: inProject("first", "--at", "2099-01-02", "--every", "10s"), code: 2, says: "at least 1m" },
      {
        args: inProject("first", "--at", "2099-01-02", "--condition-set", "9", "--user", "owner@example.com"),
        code: 2,
        says: "no condition set with the index 8",
      },
      {
        args: inProject("first", "--at", "2099-01-02", "--user", "bob@example.com"),
        code: 1,
        says: "bob@example.com may not edit",
      },
      { args: [], code: 2, says: "--at" },
    ],
  },
  "flags scheduled": { args: () => inProject(), wrong: [unknownProject] },
  "flags unschedule": {
    args: () => inProject("1"),
    wrong: [{ args: inProject("99"), code: 1, says: "does not exist" }, missing("id")],
  },
  "flags change-requests": {
    args: () => inProject("--state", "pending"),
    wrong: [{ args: inProject("--state", "lost"), code: 2, says: "Allowed choices" }],
  },
  "flags status": { args: () => inProject("first"), wrong: [unknownFlag, missing("key")] },
  "flags dependents": { args: () => inProject("first"), wrong: [unknownFlag, missing("key")] },
  "flags evaluate": {
    args: () => inProject("ann"),
    wrong: [
      { args: inProject("ann", "--flag-keys", "["), code: 2, says: "JSON list of keys" },
      { ...unknownProject, args: ["ann", ...unknownProject.args] },
    ],
  },
  "flags roles": { args: () => inProject("first"), wrong: [unknownFlag, missing("key")] },
  "flags add-role": {
    args: () => inProject("first", "Has"),
    wrong: [
      { args: inProject("nope", "Release"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first", "nope"), code: 1, says: "Role nope does not exist." },
    ],
  },
  "flags request-change": {
    args: () => inProject("first", "--changes", '{"active":false}', "--user", "owner@example.com"),
    wrong: [
      { args: inProject("nope", "--changes", "{}"), code: 1, says: "Flag nope does not exist." },
      { args: inProject("first", "--changes", "{"), code: 2, says: "--changes is not valid JSON" },
      { args: inProject("first"), code: 2, says: "--changes" },
    ],
  },
  "flags approve": {
    args: () => inProject("1", "--user", "owner@example.com"),
    wrong: [
      { args: inProject("99", "--user", "owner@example.com"), code: 1, says: "does not exist" },
      {
        args: inProject("2", "--user", "nobody@example.com"),
        code: 1,
        says: "User nobody@example.com does not exist",
      },
      missing("id"),
    ],
  },
  "flags reject": {
    args: () => inProject("3", "--user", "owner@example.com"),
    wrong: [{ args: inProject("99", "--user", "owner@example.com"), code: 1, says: "does not exist" }],
  },
  "persons list": {
    args: () => inProject("--limit", "5"),
    wrong: [
      unknownProject,
      { args: inProject("--cohort", "1"), code: 2, says: "require a running server. Use --url." },
    ],
  },
  "events definitions": { args: () => inProject(), wrong: [unknownProject] },
  "events properties": {
    args: () => inProject("--type", "person"),
    wrong: [
      { args: inProject("--type", "odd"), code: 2, says: "Allowed choices" },
      { args: inProject("--type", "group"), code: 2, says: "A valid integer is required" },
    ],
  },
  "activity list": {
    args: () => inProject("--limit", "5"),
    wrong: [unknownProject, { args: inProject("--limit", "0"), code: 2, says: "greater than or equal to 1" }],
  },
  "activity organization": {
    args: () => [],
    wrong: [{ args: ["--page", "0"], code: 2, says: "greater than" }],
  },
  "dashboards list": { args: () => inProject(), wrong: [unknownProject] },
  "dashboards show": {
    args: () => inProject("1"),
    wrong: [
      { args: inProject("nope"), code: 1, says: "Dashboard nope does not exist." },
      missing("dashboard"),
    ],
  },
  "dashboards create": {
    args: () => inProject("Created"),
    wrong: [missing("name"), { args: inProject("X", "--use-dashboard", "99"), code: 2, says: "99" }],
  },
  "insights list": { args: () => inProject(), wrong: [unknownProject] },
  "insights create": {
    args: () => inProject("Created", "--query", '{"kind":"TrendsQuery","series":[]}'),
    wrong: [{ args: inProject("X", "--query", "{"), code: 2, says: "--query is not valid JSON" }],
  },
  "insights sql": {
    args: () => inProject("--query", '{"kind":"TrendsQuery","series":[{"event":"paid"}]}'),
    wrong: [
      { args: inProject("--query", "{"), code: 2, says: "--query is not valid JSON" },
      { args: inProject("--query", '{"kind":"StickinessQuery"}'), code: 2, says: "cannot be printed as SQL" },
    ],
  },
  "persons get": {
    args: () => inProject("y".repeat(300)),
    wrong: [{ args: inProject("nobody"), code: 1, says: "Person nobody does not exist." }, missing("person")],
  },
  "persons delete": {
    args: () => inProject("z"),
    isAlone: true,
    wrong: [{ args: inProject("nobody"), code: 1, says: "Person nobody does not exist." }, missing("person")],
  },
  ...accountInvocations,
  ...clusterInvocations,
  ...productInvocations,
  "cohorts list": { args: () => [], wrong: [unknownProject, projectNotANumber] },
  "organization set": {
    args: () => ["--flags-access", "view"],
    wrong: [
      { args: [], code: 2, says: "--flags-access" },
      { args: ["--flags-access", "none"], code: 2, says: "view, edit" },
    ],
  },
  query: {
    args: () => inProject("SELECT event, count(*) AS times FROM events GROUP BY ALL"),
    isAlone: true,
    wrong: [
      missing("sql"),
      { args: ["SELECT 1", "--format", "xml"], code: 2, says: "table, json, csv, parquet" },
      { args: inProject("SELECT 1", "-o", "rows.txt"), code: 2, says: ".csv or .parquet" },
      {
        args: inProject("SELECT 1", "-o", "rows.csv", "--format", "json"),
        code: 2,
        says: "omit --format",
      },
      {
        args: inProject("SELECT 1", "-o", "/nowhere/rows.csv"),
        code: 1,
        says: "Folder /nowhere does not exist",
      },
    ],
  },
  web: {
    args: () => inProject("--range", "7d", "--compare", "previous"),
    isAlone: true,
    wrong: [
      unknownProject,
      projectNotANumber,
      { args: ["--range", "soon"], code: 2, says: "30d" },
      { args: ["--range", "0d"], code: 2, says: "30d" },
      { args: ["--range", "2026-02-30..2026-03-01"], code: 2, says: "30d" },
      { args: ["--range", "2026-03-02..2026-03-01"], code: 2, says: "30d" },
      { args: ["--by", "Page"], code: 2, says: "pages" },
      { args: ["--compare", "always"], code: 2, says: "previous, year" },
      { args: ["--limit", "0"], code: 2, says: "positive integer" },
    ],
  },
  status: { args: () => [], wrong: [{ args: ["now"], code: 2, says: "too many arguments" }] },
  usage: {
    args: () => ["--from", "2020-01-01"],
    wrong: [
      unknownProject,
      { args: ["--from", "2026-02-30"], code: 2, says: "2026-11-01" },
      { args: ["--from", "2026-02-02", "--to", "2026-02-01"], code: 2, says: "later day" },
    ],
  },
  warnings: {
    args: () => ["--limit", "10"],
    wrong: [unknownProject, { args: ["--limit", "0"], code: 2, says: "positive integer" }],
  },
  top: {
    args: () => ["--project", "1"],
    code: ({ isRunning }) => (isRunning ? 0 : 1),
    wrong: [unknownProject, { args: ["--interval", "0"], code: 2, says: "number of seconds" }],
  },
  healthcheck: {
    args: () => [],
    code: ({ isRunning }) => (isRunning ? 0 : 1),
    wrong: [{ args: ["--url", "http://127.0.0.1:1"], code: 1, says: "not ready" }],
  },
  "migrate-events": {
    // There is a file already.
    args: () => ["--to", "duckdb"],
    code: () => 1,
    isAlone: true,
    wrong: [
      { args: [], code: 2, says: "--to" },
      { args: ["--to", "mysql://here"], code: 2, says: "clickhouse://" },
    ],
  },
  migrate: { args: () => ["--check"], isAlone: true, wrong: [{ args: [], code: 2, says: "--check" }] },
  doctor: {
    args: () => ["--port", "0"],
    isAlone: true,
    wrong: [{ args: ["--port", "many"], code: 2, says: '--port is "many"' }],
  },
  scrub: { args: () => [], wrong: [{ args: ["extra"], code: 2, says: "too many arguments" }] },
  "export events": exported("events"),
  "export persons": exported("persons"),
  "export groups": exported("groups"),
  "export flags": exported("flags"),
  import: {
    args: ({ folder }) => inProject(`${folder}/old.ndjson`),
    isAlone: true,
    wrong: [
      missing("file"),
      { args: inProject("/nowhere.ndjson"), code: 1, says: "/nowhere.ndjson" },
      { args: inProject("/nowhere.ndjson", "--format", "xml"), code: 2, says: "Allowed choices" },
    ],
  },
  "backup create": {
    args: ({ folder }) => [`${folder}/backups`],
    isAlone: true,
    wrong: [{ args: ["s3://a/b"], code: 1, says: "S3 credentials are missing." }],
  },
  "backup list": {
    args: ({ folder }) => [`${folder}/backups`],
    isAlone: true,
    wrong: [{ args: ["--all"], code: 2, says: "--all" }],
  },
  "backup verify": {
    args: ({ backup }) => [backup],
    isAlone: true,
    wrong: [{ args: ["/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" }, missing("backup")],
  },
  "backup drill": {
    args: ({ backup }) => [backup],
    isAlone: true,
    wrong: [{ args: ["/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" }],
  },
  "backup prune": {
    args: ({ folder }) => [`${folder}/backups`, "--keep-last", "1", "--dry-run"],
    isAlone: true,
    wrong: [
      { args: [], code: 2, says: "--keep-last" },
      { args: ["--keep-last", "some"], code: 2, says: "an integer" },
    ],
  },
  "backup restore": {
    args: ({ backup, folder }) => [backup, "--data-dir", `${folder}/restored`],
    isAlone: true,
    wrong: [{ args: ["/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" }, missing("backup")],
  },
  rebuild: {
    // An import without a server is in no backup.
    args: ({ backup }) => ["--from", backup, "--accept-loss"],
    code: ({ isRunning }) => (isRunning ? 1 : 0),
    isAlone: true,
    wrong: [
      { args: ["--from", "/nowhere.tar.zst"], code: 1, says: "/nowhere.tar.zst" },
      { args: ["now"], code: 2, says: "too many arguments" },
    ],
  },
  version: { args: () => [], wrong: [{ args: ["now"], code: 2, says: "too many arguments" }] },
};
