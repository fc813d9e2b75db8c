/** To whom the objects belong that commands create: a user, while the activity names the operating system user. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

let file: string;
const second = "second-owner@example.com";
const member = "member@example.com";

useServer();
beforeAll(async () => {
  for (const [email, level] of [
    [second, "owner"],
    [member, "member"],
  ])
    expect((await run("users", "create", email!, "--level", level!)).code).toBe(0);
  file = join(server.dataDir, "..", `created-by-${process.pid}.json`);
});
afterAll(() => rmSync(file, { force: true }));

const run = (...args: string[]) => flagkeep([...args, "--data-dir", server.dataDir]);

interface Created {
  id: number | string;
  created_by: { email: string } | null;
  last_modified_by?: { email: string };
  usage_dashboard?: number;
}
async function read<Body>(path: string): Promise<Body> {
  const response = await server.api(path);
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Body;
}
const project = "/api/projects/1";
const flag = async (key: string) =>
  (await read<{ results: Created[] }>(`${project}/feature_flags/?key=${key}`)).results[0]!;

/** What each command creates, and where it is read. */
const kinds: Record<
  string,
  { args: (name: string) => string[]; create: (name: string) => Promise<Created> }
> = {
  "flags create": { args: (name) => ["flags", "create", name], create: flag },
  "flags create, its dashboard": {
    args: (name) => ["flags", "create", name],
    create: async (name) => read(`${project}/dashboards/${(await flag(name)).usage_dashboard}/`),
  },
  "flags create, an insight of its dashboard": {
    args: (name) => ["flags", "create", name],
    create: async (name) => {
      const path = `${project}/dashboards/${(await flag(name)).usage_dashboard}/`;
      return (await read<{ tiles: { insight: Created }[] }>(path)).tiles[0]!.insight;
    },
  },
  "flags import, a flag": { args: imported, create: flag },
  "flags import, a cohort": {
    args: imported,
    create: async (name) => {
      const { results } = await read<{ results: (Created & { name: string })[] }>(
        `${project}/cohorts/?limit=100`,
      );
      return results.find((one) => one.name === `cohort-${name}`)!;
    },
  },
  "roles create": {
    args: (name) => ["roles", "create", name],
    create: async (name) => {
      const { results } = await read<{ results: (Created & { name: string })[] }>(
        "/api/organizations/@current/roles/",
      );
      return results.find((role) => role.name === name)!;
    },
  },
  "flags schedule": {
    args: (name) => {
      Bun.spawnSync([flagkeepPath, "flags", "create", name, "--data-dir", server.dataDir]);
      return ["flags", "schedule", name, "--at", "2099-01-01", "--on"];
    },
    create: async (name) => {
      const { id } = await flag(name);
      const path = `${project}/scheduled_changes/?record_id=${id}`;
      return (await read<{ results: Created[] }>(path)).results[0]!;
    },
  },
};
const flagkeepPath = join(import.meta.dir, "../../dist/flagkeep");

function imported(name: string): string[] {
  const properties = {
    type: "OR",
    values: [{ type: "AND", values: [{ type: "person", key: "plan", value: "pro" }] }],
  };
  writeFileSync(
    file,
    JSON.stringify({
      flagkeep_flags: 1,
      group_types: {},
      cohorts: [{ name: `cohort-${name}`, filters: { properties } }],
      flags: [{ key: name }],
    }),
  );
  return ["flags", "import", file];
}

let number = 0;
for (const [kind, { args, create }] of Object.entries(kinds)) {
  test(`${kind}: the first owner, or the named user`, async () => {
    const owner = server.directory.initialized.user.email;
    const isScheduled = kind === "flags schedule";
    // A member may not schedule what only owners may edit by default: the second owner is named there.
    const named = isScheduled ? second : member;
    for (const [options, email] of [
      [[], owner],
      [["--user", named], named],
      [["--user", second.toUpperCase()], second],
    ] as const) {
      number += 1;
      const name = `made-${number}`;
      const result = await run(...args(name), ...options);
      expect([result.stderr, result.code]).toEqual(["", 0]);
      const created = await create(name);
      expect([kind, created.created_by?.email]).toEqual([kind, email]);
      if (created.last_modified_by !== undefined) expect(created.last_modified_by.email).toBe(email);
    }
    const rejected = await run(...args(`never-${number}`), "--user", "nobody@example.com");
    expect([rejected.code, rejected.stderr]).toEqual([
      1,
      expect.stringContaining("nobody@example.com is not a member of the organization"),
    ]);
  }, 30_000);
}

test("the activity names the operating system user, and no one else", async () => {
  await run("flags", "create", "told", "--user", member);
  const { id } = await flag("told");
  const { results } = await read<{ results: object[] }>(`${project}/feature_flags/${id}/activity/`);
  expect(results[0]).toMatchObject({
    user: { email: null, is_system: true },
    activity: "created",
    detail: { trigger: { job_type: "command_line", payload: {} } },
  });
  expect(JSON.stringify(results[0])).not.toContain("creator");
});

test("a deactivated owner is skipped", async () => {
  const owner = server.directory.initialized.user.email;
  expect((await run("users", "deactivate", owner)).code).toBe(0);
  try {
    const { stdout } = await run("flags", "create", "later", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ key: "later" });
  } finally {
    expect((await run("users", "activate", owner)).code).toBe(0);
  }
  expect((await flag("later")).created_by?.email).toBe(second);
});
