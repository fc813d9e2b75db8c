/** Commands for keys, projects and users, with and without a running server on the data directory. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  flagkeep,
  type Initialized,
  initializedDirectory,
  osUser,
  ServerProcess,
} from "../support/server.ts";

let dataDir: string;
let initialized: Initialized;
beforeAll(async () => {
  ({ dataDir, initialized } = await initializedDirectory());
});
afterAll(() => rmSync(dirname(dataDir), { recursive: true, force: true }));

const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const apiTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
const text = expect.any(String);

/** The result of a command as JSON. */
async function json(...args: string[]): Promise<never> {
  const { stdout, stderr, code } = await flagkeep([...args, "--data-dir", dataDir, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout) as never;
}

async function expectRejected(...args: string[]) {
  const { stdout, stderr, code } = await flagkeep([...args, "--data-dir", dataDir]);
  expect(stdout).toBe("");
  return { stderr, code };
}

/** The newest entry of the activity log. */
function lastActivity() {
  const db = new Database(join(dataDir, "flagkeep.sqlite"), { readonly: true });
  const row = db
    .query("SELECT scope, activity, user_id, is_system, detail FROM activity ORDER BY id DESC LIMIT 1")
    .get() as { detail: string };
  db.close();
  const { detail, ...entry } = row;
  return { ...entry, trigger: (JSON.parse(detail) as { trigger: unknown }).trigger };
}
const byOperator = (scope: string, activity: string) => ({
  scope,
  activity,
  user_id: null,
  is_system: 1,
  trigger: { job_type: "command_line", job_id: osUser, payload: {} },
});

describe("keys", () => {
  test("show prints all but the value, roll replaces the value", async () => {
    const before = (await json("keys", "create", "--scope", "*", "--label", "ci")) as {
      id: string;
      value: string;
    };
    expect(lastActivity()).toEqual(byOperator("PersonalAPIKey", "created"));
    const shown = {
      id: before.id,
      label: "ci",
      mask_value: text,
      user: "owner@example.com",
      scopes: ["*"],
      scoped_teams: [],
      scoped_organizations: [],
      user_id: 1,
      created_at: apiTime,
      last_used_at: null,
      last_rolled_at: null,
      expires_at: null,
    };
    expect(await json("keys", "show", before.id)).toEqual({ ...shown, revoked_at: null } as never);
    const after = (await json("keys", "roll", before.id)) as { value: string };
    expect(after).toEqual({
      ...shown,
      last_rolled_at: apiTime,
      value: expect.stringMatching(/^phx_/),
    } as never);
    expect(after.value).not.toBe(before.value);
    expect(lastActivity()).toEqual(byOperator("PersonalAPIKey", "updated"));
    await json("keys", "revoke", before.id);
    expect(await json("keys", "show", before.id)).toMatchObject({ revoked_at: apiTime });
    expect(await expectRejected("keys", "roll", before.id)).toMatchObject({ code: 1 });
  });

  test("an unknown key is rejected", async () => {
    expect(await expectRejected("keys", "show", "nope")).toEqual({
      code: 1,
      stderr: "flagkeep: Key nope does not exist. `flagkeep keys list` shows the IDs.\n",
    });
  });
});

describe("projects", () => {
  const shape = {
    id: 2,
    uuid: text,
    organization: text,
    name: "Shop",
    api_key: expect.stringMatching(/^phc_/),
    timezone: "Europe/Berlin",
    api_key_backup: null,
    api_key_backup_ends_at: null,
    secret_api_key_backup_ends_at: null,
    events_retention_days: null,
    created_at: instant,
    archived_at: null,
  };

  test("create, rename, rotate, archive and open again", async () => {
    const created = (await json("projects", "create", "Shop", "--timezone", "Europe/Berlin")) as {
      api_key: string;
      secret_api_key: string;
    };
    expect(created).toEqual({ ...shape, secret_api_key: expect.stringMatching(/^phs_/) } as never);
    expect(lastActivity()).toEqual(byOperator("Team", "created"));
    expect(await json("projects", "rename", "2", "Store")).toEqual({ ...shape, name: "Store" } as never);
    const rotated = (await json("projects", "rotate-key", "2")) as { api_key: string };
    expect(rotated.api_key).not.toBe(created.api_key);
    expect(rotated).toMatchObject({ api_key_backup: created.api_key, api_key_backup_ends_at: instant });
    expect(await expectRejected("projects", "rotate-key", "2")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is valid until"),
    });
    expect(await json("projects", "revoke-old-key", "2")).toMatchObject({ api_key_backup: null });
    expect(await json("projects", "rotate-key", "2", "--grace", "0")).toMatchObject({ api_key_backup: null });
    expect(await json("projects", "retention", "2", "400d")).toMatchObject({ events_retention_days: 400 });
    expect(await json("projects", "retention", "2", "never")).toMatchObject({ events_retention_days: 0 });
    expect(await json("projects", "retention", "2", "default")).toMatchObject({
      events_retention_days: null,
    });
    const secret = (await json("projects", "rotate-secret", "2")) as { secret_api_key: string };
    expect(secret.secret_api_key).toMatch(/^phs_/);
    expect(secret.secret_api_key).not.toBe(created.secret_api_key);
    const graceful = await json("projects", "rotate-secret", "2", "--grace", "1d");
    expect(graceful).toMatchObject({ secret_api_key_backup_ends_at: instant, api_key_backup: null });
    expect(await json("projects", "revoke-old-key", "2", "--secret")).toMatchObject({
      secret_api_key_backup_ends_at: null,
    });
    expect(await json("projects", "archive", "2")).toMatchObject({ archived_at: instant });
    const listed = (await json("projects", "list")) as { id: number }[];
    expect(listed.map(({ id }) => id)).toEqual([1]);
    const all = (await json("projects", "list", "--all")) as { id: number }[];
    expect(all.map(({ id }) => id)).toEqual([1, 2]);
    expect(await json("projects", "archive", "2", "--undo")).toMatchObject({ archived_at: null });
    expect(lastActivity()).toEqual(byOperator("Team", "updated"));
  });

  test("invalid values are rejected", async () => {
    expect(await expectRejected("projects", "create", "X", "--timezone", "Mars/Olympus")).toMatchObject({
      code: 2,
    });
    expect(await expectRejected("projects", "create", " ")).toMatchObject({ code: 2 });
    expect(await expectRejected("projects", "rename", "99", "X")).toMatchObject({ code: 1 });
    expect(await expectRejected("projects", "create", "X", "--organization", "none")).toMatchObject({
      code: 1,
    });
  });
});

describe("people", () => {
  const ann = {
    id: expect.any(Number),
    uuid: text,
    email: "ann@example.com",
    first_name: "ann",
    is_active: true,
    created_at: instant,
  };

  test("users are added and switched off and on", async () => {
    expect(await json("users", "create", "ann@example.com", "--level", "admin")).toEqual({
      ...ann,
      level: "admin",
    } as never);
    expect(lastActivity()).toEqual(byOperator("User", "created"));
    expect(await expectRejected("users", "create", "ann@example.com")).toMatchObject({ code: 2 });
    expect(await expectRejected("users", "create", "bob@example.com", "--level", "king")).toMatchObject({
      code: 2,
    });
    expect(await json("users", "deactivate", "ann@example.com")).toEqual({
      ...ann,
      is_active: false,
    } as never);
    expect(lastActivity()).toEqual(byOperator("User", "deactivated"));
    expect(await json("users", "activate", "ann@example.com")).toEqual(ann as never);
    expect(lastActivity()).toEqual(byOperator("User", "activated"));
    const emails = ((await json("users", "list")) as { email: string }[]).map(({ email }) => email);
    expect(emails).toEqual(["owner@example.com", "ann@example.com"]);
    expect(await json("members")).toMatchObject([
      { id: 1, email: "owner@example.com", level: "owner", is_active: true, joined_at: apiTime },
      { id: 2, email: "ann@example.com", level: "admin", is_active: true, joined_at: apiTime },
    ]);
    expect(await expectRejected("users", "activate", "nobody@example.com")).toMatchObject({ code: 1 });
  });

  test("roles are created, granted, revoked and deleted", async () => {
    const role = expect.objectContaining({
      id: text,
      name: "Release",
      flags_access: "edit",
      feature_flags_access_level: 37,
      members: [] as string[],
      created_at: apiTime,
    });
    expect(await json("roles", "create", "Release")).toEqual(role as never);
    expect(lastActivity()).toEqual(byOperator("Role", "created"));
    const given = expect.objectContaining({ name: "Release", members: ["owner@example.com"] });
    expect(await json("roles", "add-member", "release", "owner@example.com")).toEqual(given as never);
    expect(await json("roles", "list")).toEqual([given] as never);
    expect(await expectRejected("roles", "add-member", "Release", "nobody@example.com")).toMatchObject({
      code: 1,
    });
    expect(await json("roles", "remove-member", "Release", "owner@example.com")).toEqual(role as never);
    expect(await expectRejected("roles", "remove-member", "Release", "owner@example.com")).toMatchObject({
      code: 1,
    });
    expect(await json("roles", "delete", "Release")).toMatchObject({
      name: "Release",
      deleted: true,
    });
    expect(lastActivity()).toEqual(byOperator("Role", "deleted"));
    expect(await expectRejected("roles", "delete", "Release")).toMatchObject({ code: 1 });
  });

  test("the organization's access to flags is set; cohorts are listed", async () => {
    expect(await json("organization", "set", "--flags-access", "view")).toMatchObject({
      id: initialized.organization.id,
      name: "Default Organization",
      flags_access: "view",
      feature_flags_access_level: 21,
    });
    expect(lastActivity()).toEqual(byOperator("Organization", "updated"));
    expect(await expectRejected("organization", "set", "--flags-access", "none")).toMatchObject({ code: 2 });
    expect(await json("cohorts", "list")).toEqual([] as never);
    expect(await expectRejected("cohorts", "list", "--project", "99")).toMatchObject({ code: 1 });
  });
});

test("a running server applies changes immediately", async () => {
  await using server = await ServerProcess.start();
  const at = ["--data-dir", server.dataDir, "--json"];
  const created = await flagkeep(["projects", "create", "Second", ...at]);
  const project = JSON.parse(created.stdout) as { id: number; api_key: string };
  const send = async (key: string) =>
    (await server.post("/capture/", { api_key: key, event: "x", distinct_id: "a" })).status;
  expect(await send(project.api_key)).toBe(200);
  await flagkeep(["projects", "archive", String(project.id), ...at]);
  expect(await send(project.api_key)).toBe(401);
  expect((await server.api("/api/users/@me/")).status).toBe(200);
  const rejected = await flagkeep(["users", "deactivate", "owner@example.com", ...at]);
  expect([rejected.code, rejected.stderr]).toEqual([2, expect.stringContaining("requires an owner")]);
  await flagkeep(["users", "deactivate", "owner@example.com", "--force", ...at]);
  expect((await server.api("/api/users/@me/")).status).toBe(401);
  const useless = await flagkeep(["keys", "create", "--user", "owner@example.com", "--scope", "*", ...at]);
  expect([useless.code, useless.stderr]).toEqual([2, expect.stringContaining("is deactivated")]);
  const keys = await flagkeep(["keys", "list", "--data-dir", server.dataDir]);
  expect(keys.stdout).toContain("owner@example.com (inactive)");
  const last = await flagkeep(["projects", "archive", "1", ...at]);
  expect([last.code, last.stderr]).toEqual([2, expect.stringContaining("the last active project")]);
  const cohorts = await flagkeep(["cohorts", "list", "--data-dir", server.dataDir]);
  expect(cohorts).toEqual({ stdout: "ID  PROJECT  NAME  KIND  PERSONS\n", stderr: "", code: 0 });
});
