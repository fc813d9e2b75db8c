/** Calls every command of the executable with valid and invalid arguments, with and without a running server. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { FormatRegistry, TypeRegistry } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { getJsonShape } from "../../cli/output.ts";
import { type Metadata, openMetadata } from "../../src/accounts/metadata.ts";
import { listOrganizations } from "../../src/accounts/organizations.ts";
import { createKey } from "../../src/accounts/personal-keys.ts";
import { createProject } from "../../src/accounts/projects.ts";
import { addRoleMember, createRole } from "../../src/accounts/roles.ts";
import { createUser, setUserActive } from "../../src/accounts/users.ts";
import { createWebhook } from "../../src/accounts/webhooks.ts";
import { createCohort } from "../../src/cohorts/cohorts.ts";
import { createAnnotation } from "../../src/dashboards/annotations.ts";
import { createShareLink } from "../../src/dashboards/share-links.ts";
import { createDashboard } from "../../src/dashboards/store.ts";
import { createFeature } from "../../src/early-access/features.ts";
import { createExperiment } from "../../src/experiments/actions.ts";
import { type Transition, transitExperiment } from "../../src/experiments/transitions.ts";
import { findFlagByKey } from "../../src/flags/store/flag.ts";
import { openPayloadKey } from "../../src/flags/store/payload-key.ts";
import { flagTarget, requestChange, scheduleChange } from "../../src/flags/store/pending-changes.ts";
import { secretCipher } from "../../src/lib/sealed-text.ts";
import { paths } from "../../src/paths.ts";
import { createSurvey } from "../../src/surveys/surveys.ts";
import { getError } from "../http/json-schema.ts";
import { plainPayloads } from "../support/payloads.ts";
import { flagkeep, initializedDirectory, osUser, ServerProcess, temporaryFolder } from "../support/server.ts";
import type { Invocation, World } from "./invocation.ts";
import { invocations } from "./invocations.ts";
import { leaves } from "./tree.ts";

// Schemas of the API, which are for its documentation, are checked as such.
TypeRegistry.Set(
  "Unsafe",
  (schema, value) => getError(value, schema as Record<string, unknown>, {}) === undefined,
);
for (const format of ["uuid", "date-time"])
  FormatRegistry.Set(format, (value) => getError(value, { type: "string", format }, {}) === undefined);

const folder = temporaryFolder();
const running = {} as World;
const stopped = {} as World;
let server: ServerProcess;

beforeAll(async () => {
  const directory = await initializedDirectory();
  const keys = fill(directory.dataDir);
  const files = { "flags.yaml": flagsFile, "survey.yaml": surveyFile, "old.ndjson": oldEvents };
  const first = await ServerProcess.start({ directory });
  await first.batch(["y".repeat(300), "z"].map((distinct_id) => ({ event: "seen", distinct_id })));
  await first.eventsWhenStored(2);
  await first.stop();
  const backups = join(folder, "backups");
  const { stdout } = await flagkeep(["backup", "create", backups, "--data-dir", directory.dataDir, "--json"]);
  const { file } = JSON.parse(stdout) as { file: string };
  for (const [world, name] of [
    [running, "running"],
    [stopped, "stopped"],
  ] as const) {
    const own = join(folder, name);
    mkdirSync(own);
    for (const [file, text] of Object.entries(files)) writeFileSync(join(own, file), text);
    cpSync(directory.dataDir, join(own, "data"), { recursive: true });
    cpSync(backups, join(own, "backups"), { recursive: true });
    Object.assign(world, {
      dataDir: join(own, "data"),
      folder: own,
      isRunning: name === "running",
      keys,
      backup: join(own, "backups", basename(file)),
    });
    const created = await flagkeep([
      "flags",
      "import",
      join(own, "flags.yaml"),
      "--project",
      "1",
      "--data-dir",
      world.dataDir,
    ]);
    expect(created).toMatchObject({ stderr: "", code: 0 });
    const deleted = await flagkeep([
      "flags",
      "delete",
      "deleted-before",
      "--project",
      "1",
      "--data-dir",
      world.dataDir,
    ]);
    expect(deleted).toMatchObject({ stderr: "", code: 0 });
    leaveForLater(world.dataDir);
  }
  rmSync(directory.dataDir, { recursive: true });
  server = await ServerProcess.start({
    directory: { dataDir: running.dataDir, initialized: directory.initialized },
  });
  // `healthcheck` is one of the first calls.
  await server.query("SELECT 1 AS one");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const flagsFile = `flagkeep_flags: 1
flags:
${["first", "switched-on", "switched-off", "deleted-now", "deleted-before"].map((key) => `  - {key: ${key}, filters: {groups: [{}]}}`).join("\n")}
cohorts:
  - {name: Pro, filters: {properties: {type: AND, values: []}}}
`;
const surveyFile = "name: Overridden\ntype: popover\nquestions:\n  - {type: open, question: Why?}\n";
const oldEvents = `${JSON.stringify({ event: "old", distinct_id: "ann", timestamp: "2025-01-02T03:04:05Z" })}\n`;

/** What commands can work on; returns the ids of keys. */
function fill(dataDir: string): Record<string, string> {
  const metadata = openMetadata(paths(dataDir).metadata);
  const organizationId = listOrganizations(metadata.db)[0]!.id;
  const now = new Date();
  const user = (email: string) => createUser(metadata, { email, organizationId, level: "member" });
  const role = (name: string) => createRole(metadata, { organizationId, name, by: null }, now);
  const ann = user("ann@example.com");
  for (const name of ["bob", "dan", "eve"]) user(`${name}@example.com`);
  setUserActive(metadata, "bob@example.com", false);
  for (const name of ["Second", "Third"])
    createProject(metadata, { organizationId, name, timezone: "UTC" }, null);
  for (const name of ["Empty", "Gone"]) role(name);
  addRoleMember(metadata, { organizationId, roleId: role("Has").id, userUuid: ann.uuid, by: null }, now);
  const secrets = secretCipher(openPayloadKey(paths(dataDir).payloadKey, metadata));
  const board = createDashboard(metadata, { projectId: 1, by: 1, fields: { name: "Orders" } }, now);
  createShareLink(metadata, {
    projectId: 1,
    item: { dashboardId: board.id },
    name: "",
    passwordHash: null,
    expiresAt: null,
    by: null,
    now,
  });
  for (const content of ["kept", "deleted"]) {
    createAnnotation(
      metadata,
      { projectId: 1, by: null, now },
      { content, dateMarker: now, scope: "project", dashboardId: null, insightId: null },
    );
  }
  for (const name of ["kept", "deleted", "tested"]) {
    createWebhook(
      { metadata, secrets },
      { projectId: 1, by: null, now },
      {
        name,
        url: "https://192.88.99.1/",
        format: "json",
        template: null,
        events: ["flag_changed"],
        active: true,
      },
    );
  }
  for (const name of ["kept", "deleted"])
    createCohort(metadata, { projectId: 1, by: null, fields: { name, isStatic: true } }, now);
  prepareExperiments(metadata, now);
  const keys = ["show", "revoke", "roll"].map((label) => {
    const { key } = createKey(metadata, { userEmail: "owner@example.com", label, scopes: ["*"] });
    return [label, key.id];
  });
  metadata.close();
  return Object.fromEntries(keys);
}

/** An experiment for every transition, a feature and surveys. */
function prepareExperiments(metadata: Metadata, now: Date): void {
  const deps = { metadata, payloads: plainPayloads };
  const project = metadata.projects.find(1)!;
  const actor = { project, now, by: null, limits: undefined, skipsApproval: true };
  const ways: Record<string, Transition[]> = {
    Draft: [],
    "To launch": [],
    "To pause": ["launch"],
    "To end": ["launch"],
    "To ship": ["launch"],
    "To reset": ["launch"],
    Paused: ["launch", "pause"],
    Ended: ["launch", "end"],
    Archived: ["launch", "end", "archive"],
  };
  for (const [name, way] of Object.entries(ways)) {
    const { id } = createExperiment(deps, actor, { name });
    for (const transition of way) transitExperiment(deps, actor, id, transition);
  }
  createFeature(deps, actor, { name: "Staged", stage: "draft" });
  for (const [name, start] of [["To start"], ["To stop", now.toISOString()], ["Draft"]])
    createSurvey(deps, actor, {
      name: name!,
      type: "api",
      questions: [{ type: "open", question: "Why?" }],
      start_date: start,
    });
}

/** Three proposals and a scheduled change of a flag. */
function leaveForLater(dataDir: string): void {
  const metadata = openMetadata(paths(dataDir).metadata);
  const writing = { metadata, payloads: plainPayloads };
  const flag = findFlagByKey(metadata.db, 1, "first")!;
  const createdAt = new Date();
  for (const name of ["One", "Two", "Three"])
    requestChange(writing, flagTarget(flag), { changes: { name }, note: "", createdById: 3, createdAt });
  scheduleChange(writing, {
    projectId: 1,
    flagId: flag.id,
    payload: { operation: "update_status", value: false },
    scheduledAt: new Date("2099-01-01T00:00:00Z"),
    createdById: 1,
    createdAt,
  });
  metadata.close();
}

/** What the commands log, each under the name of the operating system's user. */
const logged = [
  "Annotation created",
  "Annotation deleted",
  "Annotation updated",
  "Cohort created",
  "Cohort deleted",
  "Cohort updated",
  "EarlyAccessFeature created",
  "EarlyAccessFeature updated",
  "Experiment created",
  "Experiment updated",
  "FeatureFlag created",
  "FeatureFlag deleted",
  "FeatureFlag restored",
  "FeatureFlag updated",
  "Organization updated",
  "Person deleted",
  "PersonalAPIKey created",
  "PersonalAPIKey deleted",
  "PersonalAPIKey updated",
  "Role created",
  "Role deleted",
  "Role updated",
  "ShareLink created",
  "ShareLink deleted",
  "Survey created",
  "Survey updated",
  "Team created",
  "Team updated",
  "User activated",
  "User created",
  "User deactivated",
  "User deleted",
  "User link_created",
  "User updated",
  "Webhook created",
  "Webhook deleted",
  "Webhook updated",
];

function loggedIn({ dataDir }: World): string[] {
  const db = new Database(join(dataDir, "flagkeep.sqlite"), { readonly: true });
  const rows = db.query("SELECT scope, activity, detail FROM activity").all() as Record<string, string>[];
  db.close();
  const own = rows.filter(({ detail }) => {
    const { trigger } = JSON.parse(detail!) as { trigger?: { job_type: string; job_id: string } };
    return trigger?.job_type === "command_line" && trigger.job_id === osUser;
  });
  return [...new Set(own.map(({ scope, activity }) => `${scope} ${activity}`))].sort();
}

/** Dozens of processes, on a machine that may be busy. */
const timeLimitMs = 300_000;

/** Some at once: each is a process that mostly waits for its start. */
const atOnce = 4;
async function inParallel(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const left = [...tasks];
  const work = async () => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) await task();
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

const commands = leaves();

/** What is wrong with a right call; empty when nothing is. */
async function findProblems(name: string, { args, code }: Invocation, world: World): Promise<string[]> {
  const own = args(world);
  const dataDir = own.includes("--data-dir") ? [] : ["--data-dir", world.dataDir];
  const called = await flagkeep([...name.split(" "), ...own, ...dataDir, "--json"]);
  const expected = code?.(world) ?? 0;
  if (called.code !== expected) return [`${name}: exit status ${called.code}: ${called.stderr}`];
  if (expected === 0 && called.stderr !== "") return [`${name}: ${called.stderr}`];
  if (expected !== 0 && called.stdout === "") return [];
  const shape = getJsonShape(commands.get(name)!)!;
  const printed = JSON.parse(called.stdout) as unknown;
  return [...Value.Errors(shape, printed)].map(({ path, message }) => `${name}: ${path} ${message}`);
}

for (const world of [running, stopped]) {
  const name = world === running ? "with a running server" : "without a server";
  test(
    `correct calls of ${name} print what their schemas declare`,
    async () => {
      const problems: string[] = [];
      const tasks = Object.entries(invocations).map(([command, invocation]) => ({
        isAlone: invocation.isAlone === true,
        run: async () => void problems.push(...(await findProblems(command, invocation, world))),
      }));
      await inParallel(tasks.filter(({ isAlone }) => !isAlone).map(({ run }) => run));
      for (const { run } of tasks.filter(({ isAlone }) => isAlone)) await run();
      expect(problems).toEqual([]);
      expect(loggedIn(world)).toEqual(logged);
    },
    timeLimitMs,
  );
}

test(
  "wrong calls end with one line that names the mistake, and print nothing to standard output",
  async () => {
    const problems: string[] = [];
    const tasks = Object.entries(invocations).flatMap(([name, { wrong }]) =>
      wrong.map(({ args, code, says }) => async () => {
        const call = [...name.split(" "), ...args];
        const { stdout, stderr, code: status } = await flagkeep([...call, "--data-dir", running.dataDir]);
        const isOneLine = /^flagkeep: [^\n]+\n$/.test(stderr);
        if (status === code && stdout === "" && isOneLine && stderr.includes(says)) return;
        problems.push(`${call.join(" ")}: ${status}, ${JSON.stringify(stderr)}, ${JSON.stringify(stdout)}`);
      }),
    );
    await inParallel(tasks);
    expect(problems).toEqual([]);
  },
  timeLimitMs,
);
