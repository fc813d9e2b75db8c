/** Flags, projects and members as PostHog's Terraform provider manages them. */

import { describe, expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";
import {
  applied,
  done,
  findProblems,
  type Json,
  type Resource,
  type Shape,
  send,
} from "./provider-requests.ts";

useServer();

const everyone = { properties: [], rollout_percentage: 100 };
const email = (value: string[]) => ({ key: "email", operator: "exact", type: "person", value });

describe("flags", () => {
  const flags: Resource = {
    path: "/api/projects/1/feature_flags/",
    shape: {
      id: "int!",
      key: "text!",
      name: "text",
      active: "bool",
      deleted: "bool",
      filters: "object",
      rollout_percentage: "int",
      tags: "texts",
    },
    always: { deleted: false },
  };
  async function destroy(id: unknown): Promise<void> {
    const { key } = await done("GET", `${flags.path}${id}/`);
    expect(await done("PATCH", `${flags.path}${id}/`, { key, deleted: true })).toMatchObject({
      deleted: true,
    });
  }

  test("with a key alone: what was not chosen is sent empty, a condition set too", async () => {
    const sent = { key: "tf-basic", name: "", active: false, filters: { groups: [{}] } };
    const { id, filters } = await applied("POST", flags, undefined, sent);
    await applied("PATCH", flags, id, { ...sent, filters: filters as Json });
    await destroy(id);
    // The key is free again.
    const again = await applied("POST", flags, undefined, { ...sent, name: "Again" });
    expect(again.id).not.toBe(id);
    await destroy(again.id);
  });

  test("a rollout is changed by its condition set, and read as an integer", async () => {
    const sent = (percentage: number) => ({
      key: "tf-rollout",
      name: "Rollout",
      active: true,
      filters: { groups: [{ rollout_percentage: percentage }] },
    });
    const { id } = await applied("POST", flags, undefined, sent(50));
    for (const percentage of [100, 0, 33]) {
      const read = await applied("PATCH", flags, id, sent(percentage));
      expect(read.rollout_percentage).toBe(percentage);
    }
    await destroy(id);
  });

  for (const [name, groups] of [
    ["one condition set", [everyone]],
    ["a rollout inside", [{ properties: [], rollout_percentage: 75 }]],
    [
      "properties",
      [
        {
          ...everyone,
          properties: [email(["a@example.com", "b@example.com"]), { ...email(["Chrome"]), key: "$browser" }],
        },
      ],
    ],
    [
      "two condition sets",
      [
        { ...everyone, properties: [email(["a@example.com"])] },
        { properties: [], rollout_percentage: 10 },
      ],
    ],
  ] as const) {
    test(`filters with ${name} are returned as sent`, async () => {
      const key = `tf-filters-${name.replaceAll(" ", "-")}`;
      const sent = { key, name, active: true, filters: { groups } };
      const { id } = await applied("POST", flags, undefined, sent);
      await applied("PATCH", flags, id, { ...sent, active: false });
      await destroy(id);
    });
  }

  test("variants and payloads are returned as sent", async () => {
    const variants = [
      { key: "control", name: "Control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ];
    const filters = { groups: [everyone], multivariate: { variants }, payloads: { test: '{"a":1}' } };
    const { id } = await applied("POST", flags, undefined, {
      key: "tf-variants",
      name: "V",
      active: true,
      filters,
    });
    await destroy(id);
  });

  test("tags are a set; name and switch are changed separately", async () => {
    const sent = { key: "tf-tags", name: "Tags", active: true, filters: { groups: [everyone] } };
    const { id } = await applied("POST", flags, undefined, { ...sent, tags: ["tag2", "tag1"] });
    for (const change of [
      { tags: ["tag1", "tag2", "tag3"] },
      { tags: ["tag1"] },
      { tags: ["managed-by:terraform", "env:test"] },
      { name: "Other" },
      { active: false },
      { active: true },
    ]) {
      await applied("PATCH", flags, id, { ...sent, ...change });
    }
    await destroy(id);
    // Applying the same configuration restores it.
    await applied("PATCH", flags, id, sent);
    await destroy(id);
  });
});

describe("projects", () => {
  const shape: Shape = {
    id: "int!",
    name: "text",
    organization: "text",
    api_token: "text",
    timezone: "text",
  };

  test("are created, renamed and deleted in an organization, which is named by id, slug or @current", async () => {
    const { id, slug } = await done("GET", "/api/organizations/@current/");
    expect(id).toBe(server.initialized.organization.id);
    const { results, next } = await done("GET", "/api/organizations/");
    expect([results, next]).toEqual([
      [expect.objectContaining({ id, slug, name: expect.any(String) })],
      null,
    ]);
    const projects: Resource = {
      path: `/api/organizations/${server.initialized.organization.id}/projects/`,
      shape,
    };
    const created = await applied("POST", projects, undefined, { name: "tf" });
    expect(created).toMatchObject({ timezone: "UTC", organization: server.initialized.organization.id });
    expect(created.api_token).toMatch(/^phc_/);
    const changed = await applied("PATCH", projects, created.id, { name: "tf-2", timezone: "Europe/London" });
    expect(changed.api_token).toBe(created.api_token);
    const listed = (await done("GET", projects.path)).results as Json[];
    expect(listed.map((project) => project.id)).toEqual([1, created.id]);
    // Flags of the new project, by its id.
    const flag = await done("POST", `/api/projects/${created.id}/feature_flags/`, { key: "in-it" });
    expect(flag).toMatchObject({ key: "in-it" });
    expect((await send("DELETE", `${projects.path}${created.id}/`)).status).toBe(204);
    for (const method of ["GET", "DELETE"]) {
      expect((await send(method, `${projects.path}${created.id}/`)).status).toBe(404);
    }
  });
});

describe("members", () => {
  const shape: Shape = {
    id: "text!",
    level: "int",
    joined_at: "text",
    is_2fa_enabled: "bool",
    user: { uuid: "text!", email: "text", first_name: "text", last_name: "text", is_email_verified: "bool" },
  };

  test("are found in the list by the user's uuid, change their level, and are removed", async () => {
    const path = `/api/organizations/${server.initialized.organization.id}/members/`;
    const added = await flagkeep([
      "users",
      "create",
      "bob@example.com",
      "--level",
      "member",
      "--data-dir",
      server.dataDir,
    ]);
    expect({ code: added.code, stderr: added.stderr }).toMatchObject({ code: 0 });
    const members = async () => {
      const { results, next } = await done("GET", path);
      expect(next).toBeNull();
      for (const member of results as Json[]) expect(findProblems(member, shape)).toEqual([]);
      return results as { id: string; level: number; user: { uuid: string; email: string } }[];
    };
    const bob = (await members()).find(({ user }) => user.email === "bob@example.com")!;
    for (const level of [8, 15, 1]) {
      const changed = await done("PATCH", `${path}${bob.user.uuid}/`, { level });
      expect(changed).toMatchObject({ id: bob.id, level, user: { uuid: bob.user.uuid } });
      expect((await members()).find(({ id }) => id === bob.id)?.level).toBe(level);
    }
    expect((await send("DELETE", `${path}${bob.user.uuid}/`)).status).toBe(204);
    expect((await members()).map(({ id }) => id)).not.toContain(bob.id);
  });
});
