/** Commands of flags and cohorts: the same in a data directory and on a server. */

import { describe, expect, test } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server } from "../support/use-server.ts";
import { api, json, local, remote, useServerWithEvent } from "./support.ts";

useServerWithEvent();

describe("flags", () => {
  const places = [
    ["in a data directory", local],
    ["on a server", remote],
  ] as const;

  for (const [index, [place, where]] of places.entries()) {
    const key = `flag-${index}`;
    const flags = (...args: string[]) => json(["flags", ...args], where());

    test(`are created, updated, deleted and restored ${place}`, async () => {
      const created = await flags(
        "create",
        key,
        "--variant",
        "a=50",
        "--variant",
        "b=50",
        "--payload",
        "a=1",
      );
      expect(created).toMatchObject({ key, active: true, version: 1, can_edit: true });
      expect(await flags("set", key, "--rollout", "20", "--payload", "b=2", "--note", "why")).toMatchObject({
        version: 2,
        rollout_percentage: 20,
        filters: { payloads: { a: "1", b: "2" } },
      });
      expect(await flags("disable", key)).toMatchObject([{ key, active: false, version: 3 }]);
      expect(await flags("disable", key)).toMatchObject([{ key, active: false, version: 3 }]);
      expect(await flags("enable", key)).toMatchObject([{ key, active: true, version: 4 }]);
      const { id } = created as { id: number };
      expect(await flags("get", key)).toEqual(
        (await api(`/api/projects/@current/feature_flags/${id}/`)) as never,
      );
      expect(await flags("delete", key)).toMatchObject([{ id, deleted: true }]);
      expect((await flagkeep(["flags", "get", key, ...where()])).stderr).toContain(
        `Flag ${key} does not exist.`,
      );
      expect(await flags("list", "--deleted")).toContainEqual(expect.objectContaining({ id }));
      expect(await flags("restore", key)).toMatchObject({ id, key, deleted: false });
    });
  }

  test.each(places)("keep the digits of long numbers %s", async (_, where) => {
    const key = `long-${Bun.randomUUIDv7()}`;
    const filters = `{"groups":[{"properties":[{"key":"id","operator":"exact","value":[12345678901234567890],"type":"person"}],"rollout_percentage":10}]}`;
    const headers = {
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
    };
    const url = `${server.url}/api/projects/@current/feature_flags/`;
    const created = await fetch(url, {
      method: "POST",
      headers,
      body: `{"key":"${key}","filters":${filters}}`,
    });
    const { id } = (await created.json()) as { id: number };
    const { code, stderr } = await flagkeep(["flags", "set", key, "--rollout", "20", ...where()]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const stored = await (await fetch(`${url}${id}/`, { headers })).text();
    expect(stored).toContain("12345678901234567890");
    expect(stored).toContain('"rollout_percentage":20');
  });

  test("are listed alike in both places, and as the API lists them", async () => {
    const { results } = (await api("/api/projects/@current/feature_flags/?order=key")) as {
      results: unknown[];
    };
    for (const [, where] of places)
      expect((await json(["flags", "list"], where())) as unknown[]).toEqual(results);
    for (const args of [["list"], ["list", "--keys"], ["get", "flag-0"]]) {
      const [inDirectory, onServer] = await Promise.all(
        places.map(([, where]) => flagkeep(["flags", ...args, ...where()])),
      );
      expect(onServer).toEqual(inDirectory!);
    }
  });

  test("of several keys, none is changed in a data directory when one is rejected", async () => {
    await json(["flags", "create", "base"], local());
    const { id } = (await json(["flags", "get", "base"], local())) as { id: number };
    const property = { key: String(id), type: "flag", operator: "flag_evaluates_to", value: true };
    const filters = JSON.stringify({ groups: [{ properties: [property], rollout_percentage: 100 }] });
    await json(["flags", "create", "dependent", "--filters", filters], local());
    const called = await flagkeep(["flags", "delete", "flag-1", "base", ...local()]);
    expect(called).toMatchObject({ code: 2, stdout: "" });
    expect(await json(["flags", "get", "flag-1"], local())).toMatchObject({ deleted: false });
  });

  test("are explained alike in both places", async () => {
    const asked = ["flags", "explain", "flag-0", "--distinct-id", "ann", "--person-property", "plan=pro"];
    const explained = await json(asked, local());
    expect(explained).toMatchObject({ flag_key: "flag-0", distinct_id: "ann" });
    expect(await json(asked, remote())).toEqual(explained as never);
    const unknown = await flagkeep(["flags", "explain", "none", "--distinct-id", "ann", ...remote()]);
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("Flag none does not exist.")]);
  });

  test("--confirm is for the data directory", async () => {
    const called = await flagkeep(["flags", "disable", "flag-0", "--confirm", ...remote()]);
    expect(called).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("--confirm needs the data directory"),
    });
  });
});

test("cohorts list prints those of all projects, or of one, from both places", async () => {
  const second = await server.api("/api/projects/", { method: "POST", body: { name: "Second" } });
  const { id: secondId } = (await second.json()) as { id: number };
  for (const id of [1, secondId]) {
    const body = { name: `Cohort ${id}`, is_static: true };
    await server.api(`/api/projects/${id}/cohorts/`, { method: "POST", body });
  }
  const both = await json(["cohorts", "list"], local());
  expect(both).toMatchObject([{ project_id: 1 }, { project_id: secondId }]);
  expect(await json(["cohorts", "list"], remote())).toEqual(both as never);
  const { results } = (await api(`/api/projects/${secondId}/cohorts/`)) as { results: object[] };
  const expected = results.map((cohort) => ({ ...cohort, project_id: secondId }));
  for (const where of [local(), remote()])
    expect(await json(["cohorts", "list", "--project", String(secondId)], where)).toEqual(expected as never);
});

test.each([
  ["in a data directory", local],
  ["on a server", remote],
] as const)("cohorts are created, shown, updated and deleted %s", async (place, where) => {
  const inProject = [...where(), "--project", "1"];
  const filters = {
    properties: { type: "AND", values: [{ key: "plan", value: ["pro"], operator: "exact", type: "person" }] },
  };
  const args = ["cohorts", "create", place, "--filters", JSON.stringify(filters)];
  const { id } = (await json(args, inProject)) as { id: number };
  const path = `/api/projects/1/cohorts/${id}/`;
  expect(await api(path)).toMatchObject({ name: place, is_static: false, created_by: { id: 1 } });
  const updated = await json(["cohorts", "set", String(id), "--name", `${place} 2`], inProject);
  expect(updated).toMatchObject({ id, name: `${place} 2` });
  expect(await json(["cohorts", "show", String(id)], inProject)).toMatchObject({ id, name: `${place} 2` });
  const sizes = await json(["cohorts", "sizes", String(id)], inProject);
  expect(sizes).toEqual((await api(`${path}sizes/`)) as never);
  const blank = await flagkeep(["cohorts", "set", String(id), "--name", " ", ...inProject]);
  expect(blank).toEqual({ code: 2, stdout: "", stderr: "flagkeep: The name may not be blank.\n" });
  expect(await json(["cohorts", "delete", String(id)], inProject)).toMatchObject({ id, deleted: true });
  const deleted = await flagkeep(["cohorts", "delete", String(id), ...inProject]);
  expect(deleted).toEqual({ code: 1, stdout: "", stderr: `flagkeep: Cohort ${id} does not exist.\n` });
});
