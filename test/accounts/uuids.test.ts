/** Uuids in paths and bodies mean the same in every spelling. */

import { expect, test } from "bun:test";
import { firstFlagPath, flagsPath, TestServer } from "../support/management-server.ts";

const spellings: [string, (uuid: string) => string][] = [
  ["upper case", (uuid) => uuid.toUpperCase()],
  ["without hyphens", (uuid) => uuid.replaceAll("-", "")],
];

for (const [name, spelled] of spellings) {
  test(`organizations, roles, members, keys and users: ${name}`, async () => {
    using server = new TestServer();
    const { organization } = server.first;
    const base = `/api/organizations/${spelled(organization.id)}`;
    const body = async (method: string, path: string, sent?: object) => {
      const answer = await server.ask(method, path, sent === undefined ? {} : { body: sent });
      expect([path, answer.status < 300]).toEqual([path, true]);
      return answer.body;
    };
    const user = await body("GET", "/api/users/@me/");
    const role = await body("POST", `${base}/roles/`, { name: "Release" });
    const rolePath = `${base}/roles/${spelled(role.id)}/`;
    expect((await body("PATCH", rolePath, { name: "Releases" })).name).toBe("Releases");
    const memberships = `${rolePath}role_memberships/`;
    const membership = await body("POST", memberships, { user_uuid: spelled(user.uuid) });
    expect(await body("GET", `${memberships}${spelled(membership.id)}/`)).toEqual(membership);
    await body("POST", flagsPath, { key: "a" });
    const access = await body("POST", `${firstFlagPath}role_access/`, { role_id: spelled(role.id) });
    expect(access.role_id).toBe(role.id);
    expect((await body("GET", `${base}/members/${spelled(user.uuid)}/`)).user.uuid).toBe(user.uuid);
    expect((await body("GET", `/api/users/${spelled(user.uuid)}/`)).uuid).toBe(user.uuid);
    const key = await body("POST", "/api/personal_api_keys/", {
      label: "ci",
      scopes: ["feature_flag:read"],
      scoped_organizations: [spelled(organization.id)],
    });
    expect(key.scoped_organizations).toEqual([organization.id]);
    expect((await body("GET", `/api/personal_api_keys/${spelled(key.id)}/`)).id).toBe(key.id);
    await body("GET", `${base}/projects/1/`);
    await body("DELETE", `${memberships}${spelled(membership.id)}/`);
    await body("DELETE", rolePath);
  });
}

test("an invalid uuid matches no record", async () => {
  using server = new TestServer();
  for (const path of ["organizations/none/roles/", "organizations/@current/roles/none/"]) {
    expect((await server.ask("GET", `/api/${path}`)).status).toBe(404);
  }
});
