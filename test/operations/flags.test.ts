/** Commands and tools about one flag: the same in a data directory and on a server; counts need the server. */

import { beforeAll, describe, expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const filters = {
  groups: [{ properties: [{ key: "plan", value: "pro", type: "person" }], rollout_percentage: 100 }],
};

useServer({ args: ["--mcp", "on"] });
beforeAll(async () => {
  await server.batch([
    { event: "$identify", distinct_id: "ann", properties: { $set: { plan: "pro" } } },
    { event: "seen", distinct_id: "bob" },
    {
      event: "$feature_flag_called",
      distinct_id: "ann",
      properties: { $feature_flag: "base", $feature_flag_response: true },
    },
  ]);
  await server.eventsWhenStored(3);
  const { id } = (await json(["flags", "create", "base", "--filters", JSON.stringify(filters)], local())) as {
    id: number;
  };
  const property = { key: String(id), type: "flag", operator: "flag_evaluates_to", value: true };
  const dependent = JSON.stringify({ groups: [{ properties: [property], rollout_percentage: 100 }] });
  await json(["flags", "create", "dependent", "--filters", dependent], local());
  await json(["roles", "create", "Release"], local());
});

const local = () => ["--data-dir", server.dataDir];
const remote = () => ["--url", server.url, "--key", server.initialized.personal_api_key];
const places = [
  ["in a data directory", local],
  ["on a server", remote],
] as const;

async function json(args: string[], where: string[]): Promise<unknown> {
  const { stdout, stderr, code } = await flagkeep([...args, ...where, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout);
}

describe.each(places)("%s", (place, where) => {
  test("status and dependent flags", async () => {
    expect(await json(["flags", "status", "base"], where())).toMatchObject({
      status: "active",
      rollout: { has_targeting_conditions: true },
    });
    expect(await json(["flags", "dependents", "base"], where())).toMatchObject([{ key: "dependent" }]);
    const none = await flagkeep(["flags", "dependents", "dependent", ...where()]);
    expect(none.stdout).toBe("No active flag depends on it.\n");
  });

  test("values with reasons, of all flags or of some", async () => {
    const evaluated = await json(["flags", "evaluate", "ann"], where());
    expect(evaluated).toMatchObject({ base: { value: true, evaluation: { reason: "condition_match" } } });
    const some = await json(["flags", "evaluate", "bob", "--flag-keys", '["base"]'], where());
    expect(some).toEqual({ base: expect.objectContaining({ value: false }) });
  });

  test("filters that are not saved, of a flag and of a new one", async () => {
    const draft = ["--distinct-id", "bob", "--filters", '{"groups":[{"rollout_percentage":100}]}'];
    for (const key of ["base", "not-saved"]) {
      const explained = await json(["flags", "explain", key, ...draft], where());
      expect(explained).toMatchObject({ flag_key: key, distinct_id: "bob", value: true });
    }
    expect((await flagkeep(["flags", "get", "not-saved", ...where()])).code).toBe(1);
  });

  test("a role gets and loses access to a flag", async () => {
    const added = await json(["flags", "add-role", "base", "release"], where());
    expect(added).toMatchObject({ role: { name: "Release" }, feature_flag: { key: "base" } });
    expect(await json(["flags", "roles", "base"], where())).toEqual([added]);
    const removed = await json(["flags", "remove-role", "base", "Release"], where());
    expect(removed).toMatchObject({ role: { name: "Release" }, deleted: true });
    expect(await json(["flags", "roles", "base"], where())).toEqual([]);
    const again = await flagkeep(["flags", "remove-role", "base", "Release", ...where()]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("Release has no record")]);
    expect((await flagkeep(["flags", "add-role", "base", "None", ...where()])).stderr).toContain(
      "Role None does not exist.",
    );
  });

  test("a change is reverted, of a protected flag with --confirm in a data directory", async () => {
    const key = `reverted-${place.replaceAll(" ", "-")}`;
    const { id } = (await json(["flags", "create", key, "--rollout", "10"], where())) as { id: number };
    await json(["flags", "set", key, "--rollout", "20"], where());
    const activity = await server.api(`/api/projects/@current/feature_flags/${id}/activity/`);
    const [last] = ((await activity.json()) as { results: { id: string }[] }).results;
    const args = ["flags", "revert", key, "--activity-id", last!.id];
    if (where === local) {
      const approvals = (value: string) =>
        server.api("/api/projects/@current/", { method: "PATCH", body: { approvals: value } });
      await json(["flags", "set", key, "--tag", "critical"], where());
      await approvals("critical");
      expect((await flagkeep([...args, ...where()])).stderr).toContain("approval_required");
      expect(await json([...args, "--confirm"], where())).toMatchObject({ rollout_percentage: 10, tags: [] });
      await approvals("off");
    } else expect(await json(args, where())).toMatchObject({ key, rollout_percentage: 10 });
  });
});

test("counts need a server", async () => {
  expect(await json(["flags", "usage", "base", "--days", "2"], remote())).toMatchObject({
    results: [{ key: "base", total: 1, values: [{ value: "true", counts: [0, 1] }] }],
  });
  const counted = await json(["flags", "blast-radius", "base"], remote());
  expect(counted).toMatchObject({ populations: [{ total: 2, matching: 1, reached: 1 }] });
  const words = await flagkeep(["flags", "blast-radius", "base", ...remote()]);
  expect(words.stdout).toContain("Persons: 1 of 2 match, 1 reached\n");
  for (const command of ["usage", "blast-radius"])
    expect(await flagkeep(["flags", command, "base", ...local()])).toEqual({
      stdout: "",
      stderr: "flagkeep: Counts require a running server. Use --url.\n",
      code: 2,
    });
});

test("tools of MCP describe a flag with a key", async () => {
  const call = async (name: string, args: object) => {
    const response = await server.post(
      "/mcp",
      { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } },
      {
        Accept: "application/json, text/event-stream",
        Authorization: `Bearer ${server.initialized.personal_api_key}`,
      },
    );
    const { result } = (await response.json()) as { result: { content: { text: string }[] } };
    return JSON.parse(result.content[0]!.text);
  };
  expect(await call("flag_status", { key: "base" })).toMatchObject({ status: "active" });
  expect(await call("flag_usage", { key: "base" })).toMatchObject({ results: [{ total: 1 }] });
  expect(await call("flag_blast_radius", { key: "base", filters })).toMatchObject({
    populations: [{ matching: 1 }],
  });
  const values = await call("evaluate_flags", { distinct_id: "ann", flag_keys: ["base"] });
  expect(values).toEqual({ base: expect.objectContaining({ value: true }) });
});
