/** Commands that are not derived from an operation, in a data directory and on a server. */

import { describe, expect, test } from "bun:test";
import { basename } from "node:path";
import { createProject } from "../../src/accounts/projects.ts";
import { exportFlagDocument } from "../../src/operations/flag-export.ts";
import { TestServer } from "../support/management-server.ts";
import { flagkeep } from "../support/server.ts";
import { server } from "../support/use-server.ts";
import { json, local, remote, useServerWithEvent } from "./support.ts";

useServerWithEvent();

const rejected = async (args: string[]) => {
  const { stderr, code } = await flagkeep(args);
  return { stderr, code };
};

describe("flags export", () => {
  test("writes the same document from both places; secrets only from the data directory", async () => {
    const secret = {
      key: "secret",
      has_encrypted_payloads: true,
      is_remote_configuration: true,
      filters: { groups: [{ rollout_percentage: 100 }], payloads: { true: '"hidden"' } },
    };
    const created = await server.api("/api/projects/1/feature_flags/", { method: "POST", body: secret });
    expect(created.status).toBe(201);
    await json(
      ["surveys", "create", "Why", "--type", "api", "--questions", '[{"type":"open","question":"Why?"}]'],
      local(),
    );
    await json(["experiments", "create", "Button"], local());
    const exported = await Promise.all(
      [local(), remote()].map((where) => flagkeep(["flags", "export", ...where])),
    );
    expect(exported[1]).toEqual(exported[0]!);
    expect(exported[0]).toMatchObject({ stderr: "", code: 0 });
    expect(exported[0]!.stdout).toContain("surveys:");
    expect(exported[0]!.stdout).toContain("experiments:");
    expect(exported[0]!.stdout).not.toContain("hidden");
    const all = await flagkeep(["flags", "export", "--with-secrets", ...local()]);
    expect(all.stdout).toContain("hidden");
    expect(await rejected(["flags", "export", "--with-secrets", ...remote()])).toEqual({
      stderr: "flagkeep: --with-secrets needs the data directory: a server exports no secrets.\n",
      code: 2,
    });
  });

  test("a key without one of the scopes exports nothing", async () => {
    using management = new TestServer();
    const path = "/api/projects/1/feature_flags/export/";
    const scopes = [exportFlagDocument.scope as string, ...exportFlagDocument.http.alsoNeeds!];
    const ask = async (held: string[]) => await management.ask("GET", path, { key: management.key(held) });
    expect((await ask(scopes)).body).toMatchObject({ flagkeep_flags: 1, flags: [], cohorts: [] });
    for (const missing of scopes) {
      const { status, body } = await ask(scopes.filter((scope) => scope !== missing));
      expect([status, body.detail]).toEqual([403, `API key missing required scope '${missing}'`]);
    }
    const { organization } = management.first;
    const { id } = createProject(
      management.metadata,
      { organizationId: organization.id, name: "Other" },
      null,
    );
    const other = management.key(scopes, { projectIds: [id] });
    expect((await management.ask("GET", path, { key: other })).status).toBe(403);
  });
});

describe("backups", () => {
  test("are created, listed and verified on a server as in its data directory", async () => {
    const created = (await json(["backup", "create"], remote())) as { file: string };
    expect(created).toMatchObject({ destination: `${server.dataDir}/backups`, encrypted: false });
    const here = (await json(["backup", "list"], local())) as object[];
    expect(here).toMatchObject([{ file: created.file, verified: true }]);
    expect(await json(["backup", "list"], remote())).toEqual(here);
    const tables = await Promise.all(
      [local(), remote()].map((where) => flagkeep(["backup", "list", ...where])),
    );
    expect(tables[1]!.stdout).toBe(tables[0]!.stdout);
    const verified = await json(["backup", "verify", created.file], local());
    expect(await json(["backup", "verify", created.file], remote())).toEqual(verified);
    const people = await flagkeep(["backup", "verify", created.file, ...remote()]);
    expect(people.stdout).toStartWith(`${created.file} is valid.\n`);
  });

  test("of a server have its settings", async () => {
    for (const [args, named] of [
      [["list", "/elsewhere"], "A destination"],
      [["create", "/elsewhere"], "A destination"],
      [["create", "--backup-mode", "incremental"], "--backup-mode"],
      [["create", "--wait", "1m"], "--wait"],
      [["verify", "x.tar.zst", "--work-dir", "/tmp"], "--work-dir"],
    ] as const)
      expect(await rejected(["backup", ...args, ...remote()])).toEqual({
        stderr: `flagkeep: ${named} needs the data directory: on a server, its settings apply.\n`,
        code: 2,
      });
    expect(await rejected(["backup", "verify", "none.tar.zst", ...remote()])).toEqual({
      stderr: `flagkeep: Backup none.tar.zst does not exist in ${server.dataDir}/backups.\n`,
      code: 1,
    });
    const [{ file }] = (await json(["backup", "list"], remote())) as [{ file: string }];
    for (const folder of ["s3://other/x", "/elsewhere", "."]) {
      const elsewhere = `${folder}/${basename(file)}`;
      expect(await rejected(["backup", "verify", elsewhere, ...remote()])).toEqual({
        stderr: `flagkeep: ${elsewhere} is not at the server's destination, ${server.dataDir}/backups. Use a name that \`flagkeep backup list\` prints.\n`,
        code: 2,
      });
    }
  });

  test("a proxy that fails meanwhile does not end the command", async () => {
    let polls = 0;
    await using proxy = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        const { pathname } = new URL(request.url);
        if (pathname.includes("/backups/jobs/")) {
          polls += 1;
          if (polls === 1) return new Response("Bad gateway", { status: 502 });
        }
        const { method, headers } = request;
        const response = await fetch(server.url + pathname, { method, headers });
        const body = (await response.json()) as { state?: string };
        // A backup of few events has ended before it is asked for.
        return Response.json(pathname.endsWith("/backups/") ? { ...body, state: "running" } : body, response);
      },
    });
    const [, url, ...others] = remote();
    expect(url).toBe(server.url);
    const args = ["backup", "create", "--json", "--url", proxy.url.href.replace(/\/$/, ""), ...others];
    const { stdout, stderr, code } = await flagkeep(args);
    expect([stderr, code]).toEqual(["", 0]);
    expect(JSON.parse(stdout)).toMatchObject({ encrypted: false });
    expect(polls).toBeGreaterThan(1);
  });

  test("are closed to keys that are not an operator's", async () => {
    const { value } = (await json(["keys", "create", "--scope", "project:write"], local())) as {
      value: string;
    };
    const where = ["--url", server.url, "--key", value];
    for (const args of [["list"], ["create"], ["verify", "x.tar.zst"]])
      expect(await rejected(["backup", ...args, ...where])).toEqual({
        stderr: "flagkeep: This action does not support personal API key access\n",
        code: 1,
      });
  });
});

test("keys show prints the same key from both places; a server has no revoked ones", async () => {
  const { id } = (await json(["keys", "create", "--scope", "feature_flag:read"], local())) as { id: string };
  const shown = await json(["keys", "show", id], local());
  expect(shown).toMatchObject({ id, user: "owner@example.com", revoked_at: null });
  expect(shown).not.toHaveProperty("value");
  expect(await json(["keys", "show", id], remote())).toEqual(shown);
  await json(["keys", "revoke", id], local());
  expect(await json(["keys", "show", id], local())).toMatchObject({ revoked_at: expect.any(String) });
  expect(await rejected(["keys", "show", id, ...remote()])).toMatchObject({
    stderr: expect.stringContaining(`Key ${id} does not exist or is revoked.`),
    code: 1,
  });
});
