/** What new users do wrong, on the command line and over HTTP: each is answered by one sentence that helps. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { executable, flagkeep, initializedDirectory, temporaryFolder } from "../support/server.ts";
import { installedProgram, testWhen } from "../support/skipped.ts";
import { server, useServer } from "../support/use-server.ts";

const folder = temporaryFolder();
let stopped: string;
useServer();
beforeAll(async () => {
  stopped = (await initializedDirectory()).dataDir;
  for (const [name, text] of Object.entries({
    "cut.json": '{"event": ',
    "empty.json": "",
    "text.txt": "just some words\n",
    "flags-cut.json": '{"flags": {"a":',
    "other.json": '{"hello": 1}',
    "a-file": "x",
  })) {
    writeFileSync(join(folder, name), text);
  }
  mkdirSync(join(folder, "empty"));
  mkdirSync(join(folder, "full"));
  writeFileSync(join(folder, "full", "thesis.doc"), "x");
  mkdirSync(join(folder, "no-database"));
  writeFileSync(join(folder, "no-database", "flagkeep.sqlite"), "x".repeat(200));
});
afterAll(() => {
  rmSync(stopped, { recursive: true });
  rmSync(folder, { recursive: true });
});

/** In arguments DATA is a running server's directory, IDLE one that is stopped, HERE a folder of files. */
const commands: [args: string, code: 1 | 2, says: string[]][] = [
  // Misspelled.
  ["statsu", 2, ["unknown command 'statsu'", "Did you mean status?"]],
  ["flags lsit", 2, ["Did you mean list?", "flagkeep flags --help"]],
  ["serve --prot 8000", 2, ["unknown option '--prot'", "Did you mean --port?"]],
  ["--versoin", 2, ["Did you mean --version?"]],
  ["help nonsense", 2, ["unknown command 'nonsense'", "flagkeep --help"]],
  ["export evnts HERE/x.csv --data-dir IDLE", 2, ["Did you mean events?"]],
  ["completions tcsh", 2, ["bash, zsh, fish"]],
  // Settings.
  ["serve --port 99999", 2, ["--port", "from 0 to 65535"]],
  ["serve --port abc", 2, ["--port", "whole number"]],
  ["serve --log-level loud", 2, ["trace, debug, info, warn, error"]],
  ["serve --backup-schedule daily", 2, ["0 3 * * *"]],
  ["serve --trusted-proxies proxy.local", 2, ["10.0.0.0/8"]],
  ["serve --public-url flags.example.com", 2, ["https://flags.example.com"]],
  ["serve --body-limit 20", 2, ["64MiB"]],
  ["serve --events-retention 1y", 2, ["400d"]],
  ["serve --backup-mode some", 2, ["full, incremental"]],
  // Places and addresses.
  [
    "serve --data-dir IDLE --port 0 --host nonsense.invalid",
    1,
    ["nonsense.invalid", "an address of this machine"],
  ],
  ["serve --data-dir HERE/new --port PORT", 1, ["cannot be listened on", "choose another --host or --port"]],
  ["serve --data-dir DATA --port 0", 1, ["in use by another Flagkeep", "another --data-dir"]],
  ["serve --data-dir HERE/a-file --port 0", 1, ["is a file, not a folder", "Use another --data-dir"]],
  ["serve --data-dir HERE/full --port 0", 1, ["thesis.doc", "an empty folder"]],
  ["serve --data-dir HERE/no-database --port 0", 1, ["flagkeep.sqlite", "flagkeep doctor"]],
  ["status --data-dir HERE/none", 1, ["is not a Flagkeep data directory", "flagkeep init"]],
  ["top --data-dir IDLE", 1, ["No server runs", "flagkeep serve"]],
  [
    "migrate-to-cluster --data-dir IDLE",
    1,
    ["addresses of PostgreSQL and ClickHouse are missing", "--postgres-url"],
  ],
  [
    `keys create --scope * --label ${"l".repeat(41)} --data-dir IDLE`,
    2,
    ["Ensure that the label has no more than 40"],
  ],
  ["healthcheck --data-dir IDLE", 1, ["not running", "flagkeep doctor"]],
  ["init --data-dir IDLE", 1, ["already contains an organization", "flagkeep keys create"]],
  ["init --data-dir HERE/x --email nobody", 2, ["valid email"]],
  ["rebuild --data-dir DATA", 1, ["in use by another Flagkeep"]],
  // Flags.
  ["flags get --data-dir IDLE", 2, ["missing required argument 'key'"]],
  ["flags get nope --data-dir IDLE", 1, ["Flag nope does not exist", "flagkeep flags list"]],
  ["flags create my.flag! --data-dir IDLE", 2, ["letters, numbers, hyphens"]],
  ["flags create a --rollout 200 --data-dir IDLE", 2, ["from 0 to 100"]],
  ["flags list --project 9 --data-dir IDLE", 1, ["Project 9 does not exist", "1 ("]],
  ["flags import HERE/flags-cut.json --data-dir IDLE", 1, ["not valid YAML or JSON"]],
  ["flags import HERE/other.json --data-dir IDLE", 1, ["not a flag export"]],
  // Queries and exports.
  ["export events --from 2026-02-01 --to 2026-01-01 --data-dir IDLE", 2, ["--from is later than --to"]],
  ["query --data-dir IDLE", 2, ["missing required argument 'sql'"]],
  ["query SELEC --data-dir DATA", 1, ['syntax error at or near "SELEC"']],
  ["query DELETE\u00a0FROM\u00a0events --data-dir DATA", 1, ["Only SELECT statements"]],
  ["query SELECT\u00a0*\u00a0FROM\u00a0evnts --data-dir DATA", 1, ["events, persons, groups"]],
  ["query SELECT\u00a0nope\u00a0FROM\u00a0events --data-dir DATA", 1, ["nope", "Candidate bindings"]],
  ["export events HERE/x.foo --data-dir IDLE", 2, ["--format", ".parquet"]],
  ["export events HERE/x.csv --format parquet --data-dir IDLE", 2, [".csv", "parquet"]],
  ["export events HERE/none/x.csv --data-dir IDLE", 1, ["/none does not exist"]],
  // Imports.
  ["import HERE/none.json --data-dir IDLE", 1, ["does not exist"]],
  ["import HERE/empty --data-dir IDLE", 1, ["holds no files"]],
  ["import http://127.0.0.1:9/ --data-dir IDLE", 1, ["POSTHOG_PERSONAL_API_KEY"]],
  // Backups.
  ["backup restore HERE/none --data-dir HERE/r", 1, ["does not exist", "flagkeep backup list"]],
  ["backup restore HERE/text.txt --data-dir HERE/r", 1, ["is not a Flagkeep backup"]],
  ["backup verify HERE/empty.json --data-dir IDLE", 1, ["is not a Flagkeep backup"]],
  [
    "backup create s3://bucket/x --data-dir IDLE --backup-s3-credentials-file HERE/a-file",
    1,
    ["aws_access_key_id"],
  ],
  ["backup create --data-dir IDLE --backup-recipients age1x", 1, ["Invalid age public key"]],
  ["backup prune --data-dir IDLE", 2, ["--keep-last"]],
  // Keys, people, projects.
  ["keys create --data-dir IDLE", 2, ["--scope"]],
  ["keys create --scope flags --label x --data-dir IDLE", 2, ["Invalid scope: flags", "feature_flag:read"]],
  ["keys revoke nope --data-dir IDLE", 1, ["flagkeep keys list"]],
  ["users create nobody --data-dir IDLE", 2, ["valid email"]],
  ["users deactivate no@body.example --data-dir IDLE", 1, ["no@body.example"]],
  ["users deactivate OWNER --data-dir IDLE", 2, ["owner"]],
  ["projects archive 1 --data-dir IDLE", 2, ["last active project", "Create another project first"]],
  ["projects archive 7 --data-dir IDLE", 1, ["Project 7 does not exist", "projects list"]],
  ["projects rotate-key 1 --grace soon --data-dir IDLE", 2, ["7d"]],
  ["mcp --data-dir IDLE", 1, ["FLAGKEEP_API_KEY", "flagkeep keys create"]],
];

describe("on the command line", () => {
  for (const [call, code, says] of commands) {
    test(`flagkeep ${call.replaceAll("\u00a0", " ")}`, async () => {
      const places: Record<string, string> = {
        DATA: server.dataDir,
        IDLE: stopped,
        HERE: folder,
        PORT: new URL(server.url).port,
        OWNER: server.initialized.user.email,
      };
      const args = call
        .split(" ")
        .map((arg) =>
          arg.replaceAll("\u00a0", " ").replace(/DATA|IDLE|HERE|PORT|OWNER/, (name) => places[name]!),
        );
      const { stdout, stderr, code: ended } = await flagkeep(args, { HOME: folder });
      expect({ stdout, ended }).toEqual({ stdout: "", ended: code });
      const last = stderr.trimEnd().split("\n").at(-1)!;
      for (const part of says) expect(last).toContain(part);
      expect(last).toStartWith("flagkeep: ");
      // The sentence is the last line; before it there is at most how far it came.
      expect(stderr.match(/^flagkeep: /gm)).toHaveLength(1);
      expect(stderr).not.toMatch(/^\s+at /m);
    });
  }
});

describe("a data directory that another user cannot read", () => {
  const asOtherUser = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", executable];
  const can =
    process.getuid?.() === 0 &&
    installedProgram("setpriv") !== undefined &&
    Bun.spawnSync([...asOtherUser, "version"]).success;
  const missing = "this needs root, setpriv and a readable executable";
  testWhen(
    can,
    "the data directory of another user",
    missing,
  )("names whose it is", () => {
    chmodSync(stopped, 0o700);
    const { stderr, exitCode } = Bun.spawnSync([...asOtherUser, "status", "--data-dir", stopped]);
    expect(exitCode).toBe(1);
    expect(stderr.toString()).toContain("cannot be read by this user. Run the command as its owner");
  });
});

describe("over HTTP", () => {
  const item = { event: "x", distinct_id: "kim" };
  const key = () => ({ Authorization: `Bearer ${server.initialized.personal_api_key}` });
  const mistakes: [
    name: string,
    path: string,
    init: () => RequestInit & { json?: object },
    status: number,
    says: string,
  ][] = [
    [
      "an unknown project key",
      "/capture/",
      () => ({ json: { ...item, api_key: "phc_wrong" } }),
      401,
      "no project has this key",
    ],
    [
      "a personal key for events",
      "/capture/",
      () => ({ json: { ...item, api_key: server.initialized.personal_api_key } }),
      401,
      "personal_api_key",
    ],
    ["no key", "/capture/", () => ({ json: item }), 401, "without an api_key"],
    [
      "JSON that is cut",
      "/capture/",
      () => ({ method: "POST", body: '{"event": ' }),
      400,
      "the body is not JSON",
    ],
    ["no body", "/capture/", () => ({ method: "POST" }), 400, "send the JSON of an event"],
    ["GET for an event", "/capture/", () => ({}), 405, "not allowed"],
    [
      "a batch that is none",
      "/batch/",
      () => ({ json: { api_key: server.token, batch: {} } }),
      400,
      "`batch` must be an array",
    ],
    [
      "events under another name",
      "/batch/",
      () => ({ json: { api_key: server.token, events: [] } }),
      400,
      "neither a `batch` of events nor an `event`",
    ],
    [
      "properties that are a list",
      "/capture/",
      () => ({ json: { ...item, api_key: server.token, properties: [] } }),
      400,
      "`properties` must be an object",
    ],
    [
      "flags without a key",
      "/flags/?v=2",
      () => ({ json: { distinct_id: "kim" } }),
      401,
      "No API token provided",
    ],
    [
      "flags with an unknown key",
      "/flags/?v=2",
      () => ({ json: { api_key: "phc_wrong", distinct_id: "kim" } }),
      401,
      "check your API key",
    ],
    [
      "flags for nobody",
      "/flags/?v=2",
      () => ({ json: { api_key: server.token } }),
      400,
      "distinct_id field is missing",
    ],
    ["no key for the API", "/api/projects/", () => ({}), 401, "credentials were not provided"],
    [
      "a key without Bearer",
      "/api/projects/",
      () => ({ headers: { Authorization: server.initialized.personal_api_key } }),
      401,
      'Write "Bearer " before the key',
    ],
    [
      "a project key for the API",
      "/api/projects/",
      () => ({ headers: { Authorization: `Bearer ${server.token}` } }),
      401,
      "Use a personal key (phx_…)",
    ],
    [
      "a wrong personal key",
      "/api/projects/",
      () => ({ headers: { Authorization: "Bearer phx_wrong" } }),
      401,
      "is invalid",
    ],
    [
      "another project",
      "/api/projects/9/feature_flags/",
      () => ({ headers: key() }),
      404,
      "Project not found",
    ],
    [
      "DELETE of a flag",
      "/api/projects/1/feature_flags/1/",
      () => ({ method: "DELETE", headers: key() }),
      405,
      "PATCH",
    ],
    [
      "a flag without a key",
      "/api/projects/1/feature_flags/",
      () => ({ json: {}, headers: key() }),
      400,
      "required",
    ],
    [
      "XML",
      "/api/projects/1/feature_flags/",
      () => ({ method: "POST", body: "<a/>", headers: { ...key(), "Content-Type": "text/xml" } }),
      415,
      "text/xml",
    ],
    [
      "a time that is none",
      "/api/projects/1/events/?after=yesterdayish",
      () => ({ headers: key() }),
      400,
      "date and time",
    ],
    [
      "a column that is none",
      "/api/projects/1/query/",
      () => ({ json: { query: "SELECT nope FROM events" }, headers: key() }),
      400,
      "nope",
    ],
  ];
  for (const [name, path, init, status, says] of mistakes) {
    test(name, async () => {
      const { json, ...rest } = init();
      const body = json === undefined ? {} : { method: "POST", body: JSON.stringify(json) };
      const headers = {
        ...(json === undefined ? {} : { "Content-Type": "application/json" }),
        ...rest.headers,
      };
      const answer = await fetch(`${server.url}${path}`, { ...rest, ...body, headers } as RequestInit);
      const text = await answer.text();
      expect({ status: answer.status, text }).toMatchObject({ status });
      const sentence = text.startsWith("{") ? (JSON.parse(text) as { detail: string }).detail : text;
      expect(sentence).toContain(says);
      expect(sentence).not.toContain("\n");
    });
  }

  test("unknown keys that apps send are listed by `warnings`", async () => {
    const { stdout } = await flagkeep(["warnings", "--data-dir", server.dataDir, "--json"]);
    expect(JSON.parse(stdout)).toContainEqual({
      project_id: null,
      type: "unknown_project_key",
      subject: "phc_...rong",
      details: {},
      count: 2,
      first_at: expect.any(String),
      last_at: expect.any(String),
    });
    const shown = await flagkeep(["warnings", "--data-dir", server.dataDir]);
    expect(shown.stdout).toMatch(/^- +unknown_project_key +phc_\.\.\.rong +2 /m);
  });
});
