/** Commands of operations: the same in a data directory and on a server, with the API's response as `--json`. */

import { describe, expect, test } from "bun:test";
import type { Operation } from "../../src/operations/operation.ts";
import { operations } from "../../src/operations/table.ts";
import { leaves } from "../cli/tree.ts";
import { flagkeep } from "../support/server.ts";
import { server } from "../support/use-server.ts";
import { api, json, local, remote, useServerWithEvent } from "./support.ts";

useServerWithEvent();

/** Members that `--json` has in their former form. */
const getFormer = ({ cli }: Operation) => Object.keys(cli?.formerJson?.properties ?? {});

/** The results of a list of the API, without members that the command prints in another form. */
function without(names: readonly string[], results: unknown[]): unknown[] {
  return results.map((result) =>
    Object.fromEntries(Object.entries(result as object).filter(([name]) => !names.includes(name))),
  );
}

const newWebhook = ["webhooks", "create", "--webhook-url", "https://not-there.invalid/"];
/** Calls that create what a list shows. */
const preparations: Record<string, string[][]> = {
  "roles.list": [["roles", "create", "Listed"]],
  "webhooks.list": [newWebhook],
  "experiments.list": [["experiments", "create", "Listed"]],
  "features.list": [["features", "create", "Listed", "--stage", "beta"]],
  "surveys.list": [
    ["surveys", "create", "Listed", "--type", "api", "--questions", '[{"type":"open","question":"Why?"}]'],
  ],
  "annotations.list": [["annotations", "create", "New checkout"]],
  "dashboards.list": [["dashboards", "create", "Listed"]],
  "insights.list": [["insights", "create", "Listed", "--query", '{"kind":"TrendsQuery","series":[]}']],
  "change_requests.list": [
    ["flags", "create", "requested"],
    ["flags", "request-change", "requested", "--changes", '{"active":false}'],
  ],
  "scheduled_changes.list": [
    ["flags", "create", "later"],
    ["flags", "schedule", "later", "--at", "2099-01-02", "--off"],
  ],
  "share_links.list": [
    // Its usage dashboard has the id 1.
    ["flags", "create", "shared"],
    ["share-links", "create", "--dashboard", "1"],
  ],
  // Waits for the first attempt, so that the delivery does not change for a while.
  "webhooks.deliveries.list": [newWebhook, ["webhooks", "test", "1"]],
};

describe("lists", () => {
  // `flags roles`, of one flag, is in flags.test.ts.
  const lists = operations.filter(
    ({ id, cli, isList }) => isList && cli !== undefined && id !== "role_access.list",
  );
  test("there are some", () => expect(lists.length).toBeGreaterThan(1));

  for (const operation of lists) {
    test(`${operation.cli!.name} prints the API's results, from the directory and from the server`, async () => {
      for (const args of preparations[operation.id] ?? [])
        expect(await flagkeep([...args, ...local()])).toMatchObject({ stderr: "", code: 0 });
      const owners = {
        user: "",
        organization: "/api/organizations/@current",
        project: "/api/projects/@current",
      };
      const owner = owners[operation.on];
      const { results } = (await api(`${owner}${operation.http.path.replace(":id", "1")}/`)) as {
        results: unknown[];
      };
      const args = [...operation.cli!.name.split(" "), ...(operation.cli!.arguments ?? []).map(() => "1")];
      const fromDirectory = (await json(args, local())) as unknown[];
      expect(fromDirectory).toEqual((await json(args, remote())) as unknown[]);
      expect(fromDirectory.length).toBeGreaterThan(0);
      const former = getFormer(operation);
      expect(without(former, fromDirectory)).toEqual(without(former, results));
      const people = await Promise.all([local(), remote()].map((where) => flagkeep([...args, ...where])));
      expect(people[0]!.stdout).toBe(people[1]!.stdout);
    });
  }
});

describe("roles", () => {
  for (const [place, where] of [
    ["in a data directory", local],
    ["on a server", remote],
  ] as const) {
    const name = `Role ${place}`;

    test(`are created, updated, granted, revoked and deleted ${place}`, async () => {
      const created = await json(["roles", "create", name], where());
      expect(created).toMatchObject({ name, feature_flags_access_level: 37, flags_access: "edit" });
      const { id } = created as { id: string };
      const updated = await json(["roles", "set", name, "--flags-access", "view"], where());
      expect(updated).toMatchObject({ id, name, feature_flags_access_level: 21, flags_access: "view" });
      const added = await json(["roles", "add-member", name.toUpperCase(), "owner@example.com"], where());
      expect(added).toMatchObject({ id, members: ["owner@example.com"] });
      expect(await api(`/api/organizations/@current/roles/${id}/`)).toMatchObject({
        members: "owner@example.com",
      });
      const removed = await json(["roles", "remove-member", name, "owner@example.com"], where());
      expect(removed).toMatchObject({ id, members: [] });
      const deleted = await flagkeep(["roles", "delete", name, ...where()]);
      expect(deleted).toEqual({ stdout: `Role ${name} deleted.\n`, stderr: "", code: 0 });
      expect((await server.api(`/api/organizations/@current/roles/${id}/`)).status).toBe(404);
    });
  }

  const rejected: [args: string[], code: number, message: string][] = [
    [["create", " "], 2, "The name may not be blank."],
    [["create", "Twice"], 2, "There is already a role with this name."],
    [["delete", "None"], 1, "Role None does not exist."],
    [["add-member", "Twice", "x@example.com"], 1, "x@example.com is not a member of the organization."],
    [["remove-member", "Twice", "x@example.com"], 1, "x@example.com does not have the role Twice."],
    [["set", "Twice"], 2, "Nothing to change. Use at least one of --name, --flags-access."],
  ];
  test("errors have the same text and exit status in both places", async () => {
    await json(["roles", "create", "Twice"], local());
    for (const [args, code, message] of rejected) {
      for (const where of [local(), remote()]) {
        const called = await flagkeep(["roles", ...args, ...where]);
        expect(called).toEqual({ stdout: "", stderr: `flagkeep: ${message}\n`, code });
      }
    }
  });
});

describe("members", () => {
  for (const [place, where] of [
    ["in a data directory", local],
    ["on a server", remote],
  ] as const) {
    const email = `${place.replaceAll(" ", "-")}@example.com`;

    test(`are added, updated, invited and removed ${place}`, async () => {
      const added = (await json(["members", "add", email, "--level", "admin"], where())) as {
        user: { uuid: string };
        console_url: string;
      };
      expect(added).toMatchObject({ level: 8, is_active: true, user: { email } });
      expect(added.console_url).toStartWith(`${server.url}/console/setup#`);
      const path = `/api/organizations/@current/members/${added.user.uuid}/`;
      const updated = await json(["members", "set", email, "--level", "member", "--no-is-active"], where());
      expect(updated).toMatchObject({ level: 1, is_active: false });
      expect(await api(path)).toEqual(updated as never);
      expect(await json(["members", "set", email, "--is-active"], where())).toMatchObject({
        is_active: true,
      });
      const link = (await json(["members", "link", email], where())) as { console_url: string };
      expect(link.console_url).toStartWith(`${server.url}/console/setup#`);
      expect(await flagkeep(["members", "remove", email, ...where()])).toEqual({
        code: 0,
        stderr: "",
        stdout: `${email} is no longer a member.\n`,
      });
      expect((await server.api(path)).status).toBe(404);
    });

    test(`the last owner stays ${place}`, async () => {
      for (const change of [["set", "--level", "member"], ["set", "--no-is-active"], ["remove"]]) {
        const [command, ...options] = change;
        const args = ["members", command!, "owner@example.com", ...options, ...where()];
        expect(await flagkeep(args)).toMatchObject({ code: 2, stdout: "" });
      }
    });
  }

  test("without a subcommand are listed", async () => {
    const listed = await flagkeep(["members", ...local()]);
    expect(listed).toEqual(await flagkeep(["members", "list", ...local()]));
    expect(listed.stdout).toContain("owner@example.com");
  });
});

describe("keys", () => {
  for (const [place, where] of [
    ["in a data directory", local],
    ["on a server", remote],
  ] as const) {
    test(`are created, listed, rolled and revoked ${place}`, async () => {
      const args = ["keys", "create", "--label", place, "--scope", "feature_flag:read", "--project", "1"];
      // In a data directory several users exist.
      const owner = where === local ? ["--user", "owner@example.com"] : [];
      const created = (await json([...args, ...owner, "--expires", "90d"], where())) as {
        id: string;
        value: string;
      };
      const { id, value } = created;
      expect(created).toMatchObject({ label: place, user: "owner@example.com", scoped_teams: [1] });
      const shown = (await api(`/api/personal_api_keys/${id}/`)) as object;
      expect(await json(["keys", "list"], where())).toContainEqual({ ...shown, user: "owner@example.com" });
      const rolled = (await json(["keys", "roll", id], where())) as { value: string };
      expect(rolled).toMatchObject({ id, value: expect.stringMatching(/^phx_/) });
      expect(rolled.value).not.toBe(value);
      expect(await json(["keys", "revoke", id], where())).toMatchObject({ id, revoked: true });
      expect((await server.api(`/api/personal_api_keys/${id}/`)).status).toBe(404);
      for (const command of ["roll", "revoke"])
        expect(await flagkeep(["keys", command, id, ...where()])).toEqual({
          code: 1,
          stdout: "",
          stderr: `flagkeep: Key ${id} does not exist or is revoked. \`flagkeep keys list\` shows the IDs.\n`,
        });
    });
  }
});

test("organization set updates what the API shows, from both places", async () => {
  const path = "/api/organizations/@current/";
  for (const [where, name] of [
    [local(), "From here"],
    [remote(), "From there"],
  ] as const) {
    const printed = await json(["organization", "set", "--name", name, "--flags-access", "edit"], [...where]);
    expect(printed).toEqual({ ...((await api(path)) as object), flags_access: "edit" } as never);
    expect(printed).toMatchObject({ name });
  }
});

describe("servers", () => {
  const list = (args: string[], env: Record<string, string> = {}) =>
    flagkeep(["roles", "list", "--json", ...args], env);

  test("are read from the environment unless a data directory is given", async () => {
    const env = { FLAGKEEP_URL: server.url, FLAGKEEP_API_KEY: server.initialized.personal_api_key };
    expect(await list([], env)).toMatchObject({ code: 0, stderr: "" });
    const nowhere = { ...env, FLAGKEEP_URL: "http://127.0.0.1:9" };
    expect(await list(local(), nowhere)).toMatchObject({ code: 0, stderr: "" });
    expect(await list([], { ...nowhere, FLAGKEEP_DATA_DIR: server.dataDir })).toMatchObject({ code: 0 });
  });

  const wrong: [name: string, args: () => string[], code: number, says: string][] = [
    ["no key", () => ["--url", server.url], 2, "FLAGKEEP_API_KEY"],
    ["both places", () => [...remote(), ...local()], 2, "exclude each other"],
    ["no URL", () => ["--url", "flags", "--key", "phx_x"], 2, "Invalid URL"],
    ["nothing there", () => ["--url", "http://127.0.0.1:9", "--key", "phx_x"], 1, "does not respond"],
    ["an invalid key", () => ["--url", server.url, "--key", "phx_x"], 1, "Check --key"],
  ];
  for (const [name, args, code, says] of wrong) {
    test(`${name}: one sentence reports it`, async () => {
      const called = await list(args());
      expect(called).toMatchObject({ stdout: "", code });
      expect(called.stderr).toMatch(/^flagkeep: [^\n]+\n$/);
      expect(called.stderr).toContain(says);
    });
  }

  test("a creator cannot be named for a server", async () => {
    const called = await flagkeep(["roles", "create", "X", "--user", "owner@example.com", ...remote()]);
    expect(called).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--user needs the data directory"),
    });
  });
});

test("a share link from the data directory has the address of the running server", async () => {
  const inProject = [...local(), "--project", "1"];
  await flagkeep(["flags", "create", "with-dashboard", ...inProject]);
  const { url } = (await json(["share-links", "create", "--dashboard", "1"], inProject)) as { url: string };
  expect(url).toStartWith(`${server.url}/console/shared#`);
});

test("commands that are not operations report that they need the data directory", async () => {
  const named = operations.flatMap(({ cli }) => (cli === undefined ? [] : [cli.name]));
  const others = [...leaves()].filter(
    ([name, { options }]) =>
      !named.includes(name) && options.every(({ long, hidden }) => long !== "--url" || hidden),
  );
  expect(others.map(([name]) => name)).toContain("backup restore");
  const called = await flagkeep(["scrub", "--url", server.url]);
  expect(called).toMatchObject({
    code: 2,
    stdout: "",
    stderr: "flagkeep: `scrub` needs the data directory and does not work with --url.\n",
  });
});

test("ids, commands and routes of the table are unique", () => {
  const unique = (values: unknown[]) => expect(new Set(values).size).toBe(values.length);
  unique(operations.map(({ id }) => id));
  unique(operations.flatMap(({ cli }) => (cli === undefined ? [] : [cli.name])));
  unique(operations.map(({ on, http }) => `${http.method} ${on} ${http.path}`));
});

test("every operation with a command has one in the tree, with --url", () => {
  const tree = leaves();
  for (const { cli } of operations) {
    if (cli === undefined) continue;
    const options = tree.get(cli.name)?.options.filter(({ hidden }) => !hidden) ?? [];
    expect(
      options.map(({ long }) => long),
      cli.name,
    ).toContain("--url");
  }
});
