/** Protected flags and the command line: what needs approval needs --confirm (contract: management-api 5.19). */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, temporaryFolder } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const folder = temporaryFolder();
const flags = (...args: string[]) => flagkeep(["flags", ...args, "--data-dir", server.dataDir]);

async function api(method: string, path: string, body?: object) {
  const response = await fetch(`${server.url}/api/projects/1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${server.initialized.personal_api_key}`,
      "content-type": "application/json",
    },
    body: body && JSON.stringify(body),
  });
  return (await response.json()) as { id: number };
}

const group = (property: object) => ({ groups: [{ properties: [property], rollout_percentage: 100 }] });

useServer();
beforeAll(async () => {
  const filters = (value: string) => ({
    properties: {
      type: "OR",
      values: [{ type: "AND", values: [{ key: "email", type: "person", operator: "exact", value }] }],
    },
  });
  const cohort = await api("POST", "cohorts/", { name: "Staff", filters: filters("a@a.com") });
  await api("POST", "cohorts/", { name: "Others", filters: filters("b@b.com") });
  const middle = await api("POST", "feature_flags/", {
    key: "middle",
    filters: group({ key: "id", type: "cohort", value: cohort.id }),
  });
  await api("POST", "feature_flags/", {
    key: "careful",
    tags: ["critical"],
    filters: group({ key: String(middle.id), type: "flag", operator: "flag_evaluates_to", value: true }),
  });
  await api("POST", "feature_flags/", { key: "alone", tags: ["critical"], rollout_percentage: 10 });
  await api("POST", "feature_flags/", { key: "free", rollout_percentage: 10 });
  await api("PATCH", "", { approvals: "critical" });
}, 60_000);
afterAll(() => rmSync(folder, { recursive: true }));

const exported = async () => (await flags("export")).stdout;
const written = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

describe("a change of a protected flag", () => {
  const changes: [args: string[], keys: string][] = [
    [["set", "alone", "--rollout", "20"], '"alone"'],
    [["set", "alone", "--tag", "harmless"], '"alone"'],
    [["set", "middle", "--rollout", "20"], '"careful"'],
    [["disable", "middle"], '"careful"'],
    [["disable", "free", "alone", "middle"], '"alone", "careful"'],
    [["delete", "alone"], '"alone"'],
    [["delete", "free", "alone"], '"alone"'],
  ];
  for (const [args, keys] of changes) {
    test(`${args.join(" ")} fails and changes nothing`, async () => {
      const before = await exported();
      const { code, stderr, stdout } = await flags(...args);
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(`(approval_required): ${keys}.`);
      expect(stderr).toContain("change_requests");
      expect(stderr).toContain("--confirm");
      expect(await exported()).toBe(before);
    });
  }

  test("does not include names, unchanged values, and other flags", async () => {
    for (const args of [
      ["set", "middle", "--name", "Between"],
      ["set", "middle", "--tag", "a"],
      ["enable", "alone"],
      ["set", "middle", "--on"],
      ["set", "free", "--rollout", "30"],
    ])
      expect([args, (await flags(...args)).code]).toEqual([args, 0]);
  });

  test("is applied with --confirm, and is in the activity", async () => {
    expect((await flags("set", "alone", "--rollout", "40", "--confirm")).code).toBe(0);
    expect((await flags("delete", "alone", "--confirm")).code).toBe(0);
    expect((await flags("restore", "alone")).stderr).toContain("approval_required");
    expect((await flags("restore", "alone", "--confirm")).code).toBe(0);
    const text = JSON.stringify(await api("GET", "feature_flags/activity/"));
    expect(text).toContain("command_line");
    expect(text).toContain("restored");
  });
});

describe("an import", () => {
  const edits: [name: string, edit: (text: string) => string, keys: string][] = [
    ["cohort", (text) => text.replace("a@a.com", "evil@a.com"), "careful"],
    [
      "flag between",
      (text) => text.replace(/(key: middle[\s\S]*?rollout_percentage: )100/, "$150"),
      "careful",
    ],
    ["protected flag", (text) => text.replace(/rollout_percentage: 40/, "rollout_percentage: 41"), "alone"],
    ["tags", (text) => text.replace(/(key: alone[\s\S]*?- )critical/, "$1tame"), "alone"],
  ];
  for (const [name, edit, key] of edits) {
    test(`that changes ${name} needs --confirm`, async () => {
      const before = await exported();
      const changed = edit(before).replace("b@b.com", `${name.replace(" ", "")}@b.com`);
      expect(edit(before)).not.toBe(before);
      const file = written("changed.yaml", changed);
      const dry = await flags("import", file, "--dry-run", "--json");
      expect(JSON.parse(dry.stdout).needs_approval).toEqual([key]);
      expect((await flags("import", file, "--dry-run")).stdout).toContain(`needs --confirm: ${key}.`);
      const { code, stderr } = await flags("import", file);
      expect(code).toBe(1);
      expect(stderr).toContain(`(approval_required): "${key}".`);
      expect(await exported()).toBe(before);
      expect((await flags("import", file, "--confirm")).code).toBe(0);
      expect(await exported()).toBe(changed);
      expect((await flags("import", written("before.yaml", before), "--confirm")).code).toBe(0);
    });
  }

  test("of the same, of descriptions, and of other cohorts and flags does not", async () => {
    const before = await exported();
    const changed = before
      .replace("b@b.com", "c@b.com")
      .replace(/(key: free[\s\S]*?rollout_percentage: )\d+/, "$177")
      .replace("name: Between", "name: Still between");
    for (const text of [before, changed]) {
      const { code, stderr } = await flags("import", written("free.yaml", text));
      expect([code, stderr]).toEqual([0, ""]);
    }
    expect(await exported()).toBe(changed);
  });
});

describe("change requests for cohorts", () => {
  const change = {
    filters: {
      properties: {
        type: "OR",
        values: [
          { type: "AND", values: [{ key: "email", type: "person", operator: "exact", value: "new@a.com" }] },
        ],
      },
    },
  };
  const records = async (...args: string[]) => JSON.parse((await flags(...args, "--json")).stdout);
  const approver = ["--user", "approver@example.com"];
  const ask = async (cohortId: number, changes: object) =>
    (await api("POST", "change_requests/", { cohort_id: cohortId, changes, note: "please" })).id;
  let list: number;

  beforeAll(async () => {
    const member = { email: "approver@example.com", first_name: "Bo", level: 1 };
    const path = "/api/organizations/@current/members/";
    expect((await server.api(path, { method: "POST", body: member })).status).toBe(201);
    list = (await api("POST", "cohorts/", { name: "List", is_static: true })).id;
    await api("POST", "feature_flags/", {
      key: "listed",
      tags: ["critical"],
      filters: group({ key: "id", type: "cohort", value: list }),
    });
  });

  test("are listed with the cohort, both values and the protected flags", async () => {
    const id = await ask(1, change);
    const [first] = await records("change-requests", "--state", "pending");
    expect(first).toMatchObject({
      id,
      flag: "",
      cohort: "Staff",
      cohort_id: 1,
      affected_flags: ["careful"],
      state: "pending",
      changes: change,
      note: "please",
    });
    expect(JSON.stringify(first.original)).toContain("a@a.com");
    const { stdout } = await flags("change-requests", "--state", "pending");
    for (const part of ["cohort Staff", "careful", "a@a.com", "new@a.com"]) expect(stdout).toContain(part);
  });

  test("are approved by another member, once, and not by the author or a stranger", async () => {
    const [{ id }] = await records("change-requests", "--state", "pending");
    const own = await flags("approve", String(id), "--user", "owner@example.com");
    expect([own.code, own.stderr.includes("another user")]).toEqual([1, true]);
    const { code, stdout } = await flags("approve", String(id), ...approver);
    expect([code, stdout]).toEqual([0, `Change request ${id} for cohort Staff is applied.\n`]);
    expect(await exported()).toContain("new@a.com");
    expect((await flags("approve", String(id), ...approver)).stderr).toContain("already decided");
    const text = JSON.stringify(await api("GET", "activity_log/?scope=Cohort"));
    expect(text).toContain("change_request");
  });

  test("are rejected; adding members is left to the server", async () => {
    const id = await ask(list, { csv: "kim" });
    const rejected = await flags("approve", String(id), ...approver);
    expect([rejected.code, rejected.stderr.includes("in the console or over the API")]).toEqual([1, true]);
    const { code, stdout } = await flags("reject", String(id), ...approver);
    expect([code, stdout]).toEqual([0, `Change request ${id} for cohort List is rejected.\n`]);
  });
});

test("an unreadable payload fails an export with secrets, and is named", async () => {
  await api("POST", "feature_flags/", {
    key: "sealed",
    is_remote_configuration: true,
    has_encrypted_payloads: true,
    filters: { groups: [{ properties: [], rollout_percentage: 100 }], payloads: { true: '"secret"' } },
  });
  expect((await flags("export", "--with-secrets")).stdout).toContain("secret");
  const db = new Database(join(server.dataDir, "flagkeep.sqlite"));
  db.run("UPDATE flag SET filters = replace(filters, 'sealed:', 'sealed:AAAA') WHERE key = 'sealed'");
  db.close();
  const output = join(folder, "secrets.yaml");
  const { code, stderr } = await flags("export", "--with-secrets", "--output", output);
  expect(code).toBe(1);
  expect(stderr).toContain('flag "sealed" cannot be decrypted (payload_unreadable)');
  expect(() => readFileSync(output)).toThrow();
  expect((await flags("export")).code).toBe(0);
});

test("doctor names a missing and a different payload.key", async () => {
  const path = join(server.dataDir, "payload.key");
  const doctor = async () => (await flagkeep(["doctor", "--data-dir", server.dataDir])).stdout;
  expect(await doctor()).toContain("payload.key is the key of this data directory.");
  renameSync(path, `${path}.kept`);
  try {
    expect(await doctor()).toMatch(/ERROR .*payload\.key is missing/);
    expect(() => readFileSync(path)).toThrow();
    writeFileSync(path, Buffer.alloc(32, 1), { mode: 0o600 });
    expect(await doctor()).toMatch(/ERROR .*payload\.key contains another key/);
  } finally {
    renameSync(`${path}.kept`, path);
  }
});
