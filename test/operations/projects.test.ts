/** Commands of projects: the same in a data directory and on a server. */

import { describe, expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();

const local = () => ["--data-dir", server.dataDir];
const remote = (key = server.initialized.personal_api_key) => ["--url", server.url, "--key", key];

interface Project {
  id: number;
  api_key: string;
  secret_api_key: string;
}
async function json(args: string[], where: string[]): Promise<unknown> {
  const { stdout, stderr, code } = await flagkeep([...args, ...where, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout);
}

describe.each([
  ["in a data directory", local],
  ["on a server", remote],
] as const)("%s", (place, where) => {
  const projects = (...args: string[]) => json(["projects", ...args], where());

  test("a project is created, renamed, listed, archived and restored", async () => {
    const created = (await projects("create", `Shop ${place}`, "--timezone", "Europe/Berlin")) as Project;
    const { secret_api_key: _, ...record } = created;
    expect(record).toMatchObject({ timezone: "Europe/Berlin", archived_at: null, api_key_backup: null });
    const id = String(created.id);
    expect(await projects("show-key", id)).toEqual(created as never);
    expect((await flagkeep(["projects", "show-key", id, ...where()])).stdout).toBe(`${created.api_key}\n`);
    const renamed = await projects("rename", id, `Store ${place}`);
    expect(renamed).toEqual({ ...record, name: `Store ${place}` } as never);
    expect(await projects("list")).toContainEqual(renamed);
    expect(await projects("retention", id, "400d")).toMatchObject({ events_retention_days: 400 });
    expect(await projects("archive", id)).toMatchObject({ archived_at: expect.any(String) });
    expect(await projects("list")).not.toContainEqual(expect.objectContaining({ id: created.id }));
    expect(await projects("archive", id, "--undo")).toMatchObject({ archived_at: null });
  });

  test("keys are rotated with a grace period, and the old ones revoked", async () => {
    const before = (await projects("create", `Keys ${place}`)) as Project;
    const id = String(before.id);
    const rotated = (await projects("rotate-key", id)) as Project;
    expect(rotated).toMatchObject({
      api_key_backup: before.api_key,
      api_key_backup_ends_at: expect.any(String),
    });
    expect(rotated.api_key).not.toBe(before.api_key);
    expect(await projects("revoke-old-key", id)).toMatchObject({ api_key_backup: null });
    const secret = (await projects("rotate-secret", id, "--grace", "1d")) as Project;
    expect(secret.secret_api_key).toMatch(/^phs_/);
    expect(secret).toMatchObject({ secret_api_key_backup_ends_at: expect.any(String) });
    expect(await projects("revoke-old-key", id, "--secret")).toMatchObject({
      secret_api_key_backup_ends_at: null,
    });
    const printed = await flagkeep(["projects", "rotate-key", id, "--grace", "0", ...where()]);
    expect(printed.stdout).toMatch(/^phc_\w+\nThe old key is rejected from now on\.\n$/);
  });
});

test("the list is the same in both places", async () => {
  expect(await json(["projects", "list"], local())).toEqual(
    (await json(["projects", "list"], remote())) as never,
  );
});

test("on a server, what only the operator may do is rejected, and a secret key stays hidden", async () => {
  for (const args of [
    ["list", "--all"],
    ["archive", "1", "--force"],
  ]) {
    const { code, stderr } = await flagkeep(["projects", ...args, ...remote()]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("needs the data directory")]);
  }
  const restricted = (await json(["keys", "create", "--scope", "project:read"], local())) as {
    value: string;
  };
  const shown = await flagkeep(["projects", "show-key", "1", "--secret", ...remote(restricted.value)]);
  expect([shown.code, shown.stderr]).toEqual([1, expect.stringContaining("may not see the secret key")]);
});
