/** A project's key is replaced while a server runs and apps send with the old one. */

import { expect, test } from "bun:test";
import { flagkeep, ServerProcess, until } from "../support/server.ts";

test("the old key is accepted during the grace period, status counts its use, then it is rejected", async () => {
  await using server = await ServerProcess.start();
  const old = server.token;
  const run = async (...args: string[]) => {
    const { stdout, stderr, code } = await flagkeep([...args, "--data-dir", server.dataDir]);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  };
  const post = async (url: string, body: object) =>
    (await fetch(url, { method: "POST", body: JSON.stringify({ ...body, distinct_id: "kim" }) })).status;
  const send = (api_key: string, { url } = server) => post(`${url}/capture/`, { api_key, event: "x" });
  const flags = (api_key: string) => post(`${server.url}/flags/?v=2`, { api_key });
  const rotated = JSON.parse(await run("projects", "rotate-key", "1", "--grace", "1h", "--json")) as {
    api_key: string;
  };
  await until(async () => (await send(rotated.api_key)) === 200, "the new key is known");
  expect([await send(old), await flags(old), await flags(rotated.api_key)]).toEqual([200, 200, 200]);
  const { replaced_keys } = JSON.parse(await run("status", "--json")) as { replaced_keys: object[] };
  expect(replaced_keys).toEqual([
    {
      project_id: 1,
      kind: "public",
      ends_at: expect.any(String),
      requests: 2,
      requests_with_new: 2,
      last_used_at: expect.any(String),
    },
  ] as never);
  expect(await run("status")).toMatch(
    /^Key {7}of project 1 \(public\) before the current key is valid until \S+: 2 of 4 requests use it, the last at /m,
  );
  // What was counted outlives the process.
  await server.stop();
  await using again = await ServerProcess.start({ directory: server.directory });
  const project = (await (await again.api("/api/projects/1/")).json()) as object;
  expect(project).toMatchObject({
    api_token: rotated.api_key,
    api_token_backup: old,
    api_token_backup_use: { requests: 2, requests_with_new: 2 },
  });
  const second = JSON.parse(await run("projects", "rotate-key", "1", "--grace", "0", "--json")) as {
    api_key: string;
  };
  const third = JSON.parse(await run("projects", "rotate-key", "1", "--grace", "2s", "--json")) as {
    api_key_backup: string;
  };
  expect(third.api_key_backup).toBe(second.api_key);
  // No one does anything for the key to end.
  await until(async () => (await send(second.api_key, again)) === 401, "the old key has ended by itself");
  expect(await run("status")).not.toContain("before the present one");
}, 60_000);
