/** `flagkeep flags …` while a server is running, as a user would call it. */

import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initializedDirectory, temporaryFolder } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const folder = temporaryFolder();
useServer();
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a command on the server's data directory. */
const flags = (...args: string[]) => flagkeep(["flags", ...args, "--data-dir", server.dataDir]);
async function json<Result>(...args: string[]): Promise<Result> {
  const { stdout, stderr, code } = await flags(...args, "--json");
  if (code !== 0) throw new Error(`${args.join(" ")}: ${stderr}`);
  return JSON.parse(stdout) as Result;
}
interface Record {
  id: number;
  key: string;
  active: boolean;
  version: number;
  filters: object;
}
async function valuesFor(distinct_id: string) {
  const response = await server.post("/flags/?v=2", { api_key: server.token, distinct_id });
  const body = (await response.json()) as {
    flags: { [key: string]: { enabled: boolean; variant: string | null } };
  };
  return Object.fromEntries(
    Object.entries(body.flags).map(([key, { enabled, variant }]) => [key, enabled && (variant ?? true)]),
  );
}

describe("help", () => {
  for (const command of [
    [],
    ["list"],
    ["get"],
    ["create"],
    ["set"],
    ["enable"],
    ["disable"],
    ["delete"],
    ["restore"],
    ["export"],
    ["import"],
    ["explain"],
  ]) {
    test(`flagkeep flags ${[...command, "--help"].join(" ")}`, async () => {
      const { stdout, stderr, code } = await flagkeep(["flags", ...command, "--help"]);
      expect(stdout).toContain("Usage: flagkeep flags");
      if (command.length > 0) expect(stdout).toContain("Example");
      expect([stderr, code]).toEqual(["", 0]);
    });
  }
});

test("create, list, get, disable and enable: each applies to the next response", async () => {
  const created = await json<Record>(
    "create",
    "button",
    "--name",
    "The button",
    "--variant",
    "blue=100",
    "--variant",
    "green=0",
    "--payload",
    'blue={"hex":"#00f"}',
    "--tag",
    "shop",
  );
  expect(created).toMatchObject({
    key: "button",
    active: true,
    version: 1,
    tags: ["shop"],
    name: "The button",
  });
  expect(await valuesFor("a")).toEqual({ button: "blue" });
  expect((await json<Record[]>("list")).map(({ key }) => key)).toEqual(["button"]);
  expect((await flags("list")).stdout).toMatch(/^KEY .*\nbutton +yes +100% +blue,green +1 +The button\n$/);
  expect(await json<Record>("get", "button")).toMatchObject({ id: created.id, filters: created.filters });
  expect((await flags("get", "button")).stdout).toContain("key: button");
  for (const [command, active] of [
    ["disable", false],
    ["enable", true],
  ] as const) {
    expect(await json<Record[]>(command, "button", "--note", command)).toMatchObject([
      { key: "button", active },
    ]);
    expect(Object.keys(await valuesFor("a"))).toEqual(active ? ["button"] : []);
    const again = await flags(command, "button");
    expect(again.stdout).toContain("already");
  }
  expect((await json<Record>("get", "button")).version).toBe(3);
  const log = await server.api(`/api/projects/1/feature_flags/${created.id}/activity/`);
  const { results } = (await log.json()) as {
    results: { activity: string; user: unknown; detail: { trigger: object; note?: string } }[];
  };
  expect(results.map(({ activity }) => activity)).toEqual(["updated", "updated", "created"]);
  expect(results.map(({ detail }) => detail.note)).toEqual(["enable", "disable", undefined]);
  for (const { detail } of results) {
    expect(detail.trigger).toMatchObject({ job_type: "command_line", job_id: expect.stringMatching(/./) });
  }
});

test("the rules are those of the API", async () => {
  // Made by the test before, when it runs.
  await flags("create", "button");
  const rejections: [args: string[], says: string][] = [
    [["create", "button"], "already a feature flag with this key"],
    [["create", "a b"], "etters, numbers, hyphens"],
    [["create", "x", "--rollout", "101"], "from 0 to 100"],
    [["create", "x", "--rollout", "ten"], "from 0 to 100"],
    [["create", "x", "--variant", "a=10"], "100"],
    [["create", "x", "--variant", "a"], "control=50"],
    [["create", "x", "--payload", "{"], "JSON"],
    [["create", "x", "--filters", "[]"], "JSON object"],
    [["create", "x", "--filters", "{}", "--rollout", "5"], "--filters"],
    [["create", "x", "--filters", '{"groups":[{"rollout_percentage":"x"}]}'], "rollout_percentage"],
    [["get", "nothing"], "Flag nothing does not exist"],
    [["enable", "button", "nothing"], "Flag nothing does not exist"],
    [["list", "--project", "7"], "Project 7 does not exist"],
    [["explain", "button"], "--distinct-id"],
    [["explain", "button", "--distinct-id", "a", "--group", "acme"], "NAME=VALUE"],
    [["import", join(folder, "nowhere.yaml")], "cannot be read"],
  ];
  for (const [args, says] of rejections) {
    const { stdout, stderr, code } = await flags(...args);
    expect([args, stdout, stderr.includes(says) || stderr]).toEqual([args, "", true]);
    expect(code).toBeGreaterThan(0);
    expect(stderr).not.toContain("    at ");
  }
  expect((await json<Record[]>("list")).map(({ key }) => key)).toEqual(["button"]);
});

test("explain equals the API, as text and as JSON", async () => {
  await server.capture({ event: "$set", distinct_id: "ann", properties: { $set: { plan: "pro" } } });
  await server.eventsWhenStored(1);
  const filters = {
    groups: [
      {
        properties: [{ key: "plan", type: "person", operator: "exact", value: "pro" }],
        rollout_percentage: 100,
      },
    ],
  };
  const { id } = await json<Record>("create", "pro", "--filters", JSON.stringify(filters));
  const explained = await json<object>("explain", "pro", "--distinct-id", "ann");
  const response = await server.api(`/api/projects/1/feature_flags/${id}/explain/?distinct_id=ann`);
  expect(explained).toEqual((await response.json()) as object);
  const text = await flags("explain", "pro", "--distinct-id", "ann");
  expect(text.stdout).toStartWith('pro is on for "ann".\nWhy: Matched condition set 1.\n');
  expect(text.stdout).toContain('found "pro" (stored)');
  const other = await flags("explain", "pro", "--distinct-id", "ann", "--person-property", "plan=free");
  expect(other.stdout).toStartWith('pro is off for "ann".');
  const unknown = await flags("explain", "nothing", "--distinct-id", "ann");
  expect(unknown).toMatchObject({ stdout: "", code: 1 });
  expect(unknown.stderr).toContain("nothing");
});

test("export and import between two projects; a dry run prints the changes", async () => {
  const created = await server.api("/api/organizations/@current/projects/", {
    method: "POST",
    body: { name: "Two" },
  });
  const { id } = (await created.json()) as { id: number };
  const two = ["--project", String(id)];
  expect((await flags("list")).stderr).toContain("--project");
  const file = join(folder, "flags.yaml");
  expect((await flags("export", "--project", "1", "-o", file)).code).toBe(0);
  expect(readFileSync(file, "utf8")).toContain("key: button");
  expect((await flags("export", "--project", "1", "-o", file)).stderr).toContain("--force");
  expect((await flags("export", "--project", "1", "-o", file, "--force")).code).toBe(0);
  const printed = await flags("export", "--project", "1");
  expect(printed.stdout).toBe(readFileSync(file, "utf8"));
  const asJson = JSON.parse((await flags("export", "--project", "1", "--json")).stdout) as {
    flags: Record[];
  };
  expect(asJson.flags.map(({ key }) => key)).toEqual(["button", "pro"]);

  const dry = await flags("import", file, ...two, "--dry-run");
  expect(dry.stdout).toBe("+ flag button\n+ flag pro\n2 would be created, 0 would be changed.\n");
  expect(await json<Record[]>("list", ...two)).toEqual([]);
  const done = await flags("import", file, ...two);
  expect(done.stdout).toBe("+ flag button\n+ flag pro\n2 created, 0 changed.\n");
  expect((await flags("export", ...two)).stdout).toBe(printed.stdout);
  expect((await flags("import", file, ...two)).stdout).toBe("No differences.\n");

  writeFileSync(file, printed.stdout.replace("The button", "A button"));
  const difference = await json<{ dry_run: boolean; differences: unknown[] }>(
    "import",
    file,
    ...two,
    "--dry-run",
  );
  expect(difference).toEqual({
    dry_run: true,
    format: "Flagkeep",
    environment: null,
    not_mapped: [],
    differences: [
      {
        kind: "flag",
        name: "button",
        change: "updated",
        members: [{ path: "name", before: "The button", after: "A button" }],
      },
    ],
    remarks: [],
  } as never);
  writeFileSync(file, `${printed.stdout}  - key: a b\n`);
  const rejected = await flags("import", file, ...two);
  expect(rejected.code).toBe(0);
  expect(rejected.stderr).toContain("Not taken over: flag a b, the flag: ");
  expect((await json<Record[]>("list", ...two)).length).toBe(2);
}, 60_000);

test("a rollout is as requested: none, all for variants, fractions in the filters", async () => {
  const { dataDir } = await initializedDirectory();
  const at = ["--data-dir", dataDir];
  const getGroups = async (key: string) => {
    const { stdout } = await flagkeep(["flags", "get", key, "--json", ...at]);
    return (
      JSON.parse(stdout) as { filters: { groups: { rollout_percentage: number }[] } }
    ).filters.groups.map(({ rollout_percentage: percent }) => percent);
  };
  const variants = ["--variant", "a=50", "--variant", "b=50"];
  for (const [key, options, reported, groups] of [
    ["alone", [], "matches nobody yet: add --rollout", []],
    ["paid", ["--payload", "1"], "matches nobody yet: add --rollout", []],
    ["varied", variants, "its rollout is 100%", [100]],
    ["varied-less", [...variants, "--rollout", "20"], "its rollout is 20%", [20]],
    ["fraction", ["--rollout", "12.5"], "its rollout is 12.5%", [12.5]],
    ["nobody", ["--rollout", "0"], "its rollout is 0%", [0]],
  ] as const) {
    const { stdout } = await flagkeep(["flags", "create", key, ...options, ...at]);
    expect([key, stdout]).toEqual([key, expect.stringContaining(reported)]);
    expect(await getGroups(key)).toEqual([...groups]);
  }
  // A number is set even if the stored one is read as it.
  for (const [rollout, more] of [
    ["33.3", []],
    ["33", []],
    ["12.5", ["--payload", "true=1"]],
  ] as const) {
    expect(await flagkeep(["flags", "set", "alone", "--rollout", rollout, ...more, ...at])).toMatchObject({
      code: 0,
    });
    expect(await getGroups("alone")).toEqual([Number(rollout)]);
  }
  const filters = JSON.stringify({ groups: [{ rollout_percentage: 1 }, { rollout_percentage: 2 }] });
  await flagkeep(["flags", "create", "two", "--filters", filters, ...at]);
  const rejected = await flagkeep(["flags", "set", "two", "--rollout", "12.5", ...at]);
  expect([rejected.code, rejected.stderr]).toEqual([2, expect.stringContaining("2 condition sets")]);
  const later = ["flags", "schedule", "fraction", "--at", "2099-01-01", "--rollout", "33.3", "--json", ...at];
  expect(JSON.parse((await flagkeep(later)).stdout)).toMatchObject({
    payload: { value: { filters: { groups: [{ rollout_percentage: 33.3 }] } } },
  });
  rmSync(dataDir, { recursive: true });
}, 60_000);

test("before the first start there are flags already, and no other data are needed", async () => {
  const { dataDir } = await initializedDirectory();
  const created = await flagkeep(["flags", "create", "early", "--data-dir", dataDir]);
  expect(created.stdout).toBe("Flag early is created, with ID 1; it matches nobody yet: add --rollout.\n");
  await flagkeep(["flags", "set", "early", "--rollout", "100", "--data-dir", dataDir]);
  const explained = await flagkeep([
    "flags",
    "explain",
    "early",
    "--distinct-id",
    "a",
    "--data-dir",
    dataDir,
  ]);
  expect(explained.stdout).toStartWith('early is on for "a".');
  rmSync(dataDir, { recursive: true });
  const nowhere = await flagkeep(["flags", "list", "--data-dir", join(folder, "none")]);
  expect(nowhere.code).toBe(1);
  expect(nowhere.stderr).toContain("flagkeep init");
  expect(existsSync(join(folder, "none"))).toBe(false);
});

test("flags of another product, with unsupported parts", async () => {
  const rule = (kind: string) => ({
    clauses: [{ attribute: "plan", op: "in", values: ["pro"], contextKind: kind }],
    variation: 0,
  });
  const flag = (key: string, kind: string) => ({
    key,
    variations: [
      { _id: "a", value: true },
      { _id: "b", value: false },
    ],
    environments: {
      production: { on: true, rules: [rule(kind)], fallthrough: { variation: 1 } },
      test: { on: true, rules: [], fallthrough: { variation: 0 } },
    },
  });
  const file = join(folder, "launchdarkly.json");
  writeFileSync(file, JSON.stringify({ items: [flag("ld.user", "user"), flag("ld-org", "organization")] }));
  const one = ["--project", "1"];
  const inFile = await flags("import", file, ...one);
  expect(inFile.code).toBe(0);
  expect(inFile.stdout).toContain("LaunchDarkly, environment production: 2 flags read.");
  expect(inFile.stderr.trim().split("\n")).toEqual([
    'Not taken over: flag ld-user, its key: was "ld.user": use the new key in your code.',
    "Not taken over: flag ld-org, rule 1: it uses contexts of kind organization.",
  ]);
  expect(inFile.stdout).toContain("Imported turned off: ld-org. Review them before you enable them.");
  expect(await json("import", file, ...one)).toMatchObject({
    differences: [],
    turned_off: ["ld-org"],
    not_mapped: [{}, {}],
  });
  expect(await json("import", file, "--environment", "test", "--dry-run", ...one)).toMatchObject({
    format: "LaunchDarkly",
    environment: "test",
    dry_run: true,
    differences: [{ name: "ld-org" }, { name: "ld-user" }],
  });
  const wrong = await flags("import", file, "--environment", "nope", ...one);
  expect(wrong).toMatchObject({ code: 1, stdout: "" });
  expect(wrong.stderr).toContain("production, test");
  const none = join(folder, "none.json");
  writeFileSync(none, '{"hello": 1}');
  expect((await flags("import", none, ...one)).stderr).toContain("no other product's format is detected");
  expect(await valuesFor("u")).toMatchObject({ "ld-user": false });
});

test("set changes several fields together; delete and restore", async () => {
  const one = ["--project", "1"];
  await json(
    "create",
    "changed",
    ...one,
    "--variant",
    "blue=50",
    "--variant",
    "green=50",
    "--payload",
    "blue=1",
  );
  const after = await json<Record>(
    "set",
    "changed",
    ...one,
    "--rollout",
    "20",
    "--variant",
    "blue=70",
    "--variant",
    "green=30",
    "--payload",
    "green=2",
    "--off",
  );
  expect(after).toMatchObject({
    active: false,
    version: 2,
    filters: {
      groups: [{ rollout_percentage: 20 }],
      multivariate: { variants: [{ rollout_percentage: 70 }, { rollout_percentage: 30 }] },
      payloads: { blue: "1", green: "2" },
    },
  });
  expect((await flags("set", "changed", ...one, "--on", "--rollout", "100")).stdout).toContain(
    "it is on, version 3",
  );
  expect(["blue", "green"]).toContain((await valuesFor("u")).changed as string);
  // A rejected change changes nothing of the rest either.
  expect((await flags("set", "changed", ...one, "--off", "--variant", "blue=10")).code).toBe(2);
  expect((await json<Record>("get", "changed", ...one)).active).toBe(true);

  expect((await flags("delete", "changed", ...one, "nothing")).code).toBe(1);
  expect((await json<Record>("get", "changed", ...one)).version).toBe(3);
  expect((await flags("delete", "changed", ...one)).stdout).toContain("flags restore changed");
  expect(await valuesFor("u")).not.toHaveProperty("changed");
  // Its key is free; it comes back beside the one that has it now.
  await json("create", "changed", ...one);
  expect(await json("restore", "changed", ...one)).toMatchObject({ key: "changed-2", active: true });
  expect((await flags("restore", "changed", ...one)).code).toBe(1);
});
