/** `query`, `web`, `warnings`, `status` and `doctor`: the same in a data directory and on a server. */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, temporaryFolder } from "../support/server.ts";
import { server } from "../support/use-server.ts";
import { json, local, remote, useServerWithEvent } from "./support.ts";

useServerWithEvent();

const everywhere = async (...args: string[]) =>
  await Promise.all([local(), remote()].map((where) => flagkeep([...args, "--project", "1", ...where])));

const selections: Record<string, string[]> = {
  "a table": ["SELECT event, distinct_id FROM events"],
  "numbers beyond JavaScript's precision": ["SELECT 9007199254740993 AS big, 0.1 AS small", "--json"],
  "CSV with a limit": ["SELECT event FROM events", "--format", "csv", "--limit", "1"],
  "Parquet on standard output": ["SELECT event FROM events", "--format", "parquet"],
  "a chart": ["SELECT event, count(*) AS times FROM events GROUP BY ALL", "--chart"],
};

describe("query", () => {
  for (const [name, args] of Object.entries(selections)) {
    test(`prints ${name} in both places`, async () => {
      const [inDirectory, onServer] = await everywhere("query", ...args);
      expect(onServer).toEqual(inDirectory!);
      expect(inDirectory).toMatchObject({ code: 0, stderr: "" });
      expect(inDirectory!.stdout).not.toBe("");
    });
  }

  test("says that rows are missing in both places", async () => {
    for (const called of await everywhere("query", "SELECT * FROM range(3)", "--limit", "1"))
      expect(called).toMatchObject({ code: 0, stderr: "flagkeep: only the first 1 rows are shown.\n" });
  });

  test("writes all rows to a file", async () => {
    const files = [local(), remote()].map((where, index) => ({
      where,
      path: join(temporaryFolder(), `${index}.csv`),
    }));
    for (const { where, path } of files) {
      const called = await flagkeep(["query", "SELECT event FROM events", "-o", path, ...where]);
      expect(called).toEqual({ code: 0, stdout: "", stderr: `The rows are in ${path}.\n` });
    }
    expect(files.map(({ path }) => readFileSync(path, "utf8"))).toEqual(["event\nseen\n", "event\nseen\n"]);
  });

  test("rejects statements on a server with the server's reason, and writes no file", async () => {
    const path = join(temporaryFolder(), "rows.csv");
    for (const file of [[], ["-o", path]]) {
      const called = await flagkeep(["query", "SELECT * FROM nowhere", ...file, ...remote()]);
      expect(called).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("nowhere") });
    }
    expect(await Bun.file(path).exists()).toBe(false);
    const unknown = await flagkeep(["query", "SELECT 1", "--project", "9", ...remote()]);
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
  });
});

test("web prints the same figures in both places", async () => {
  const args = ["web", "--range", "7d", "--compare", "previous"];
  expect(await json(args, remote())).toEqual(await json(args, local()));
  const [inDirectory, onServer] = await everywhere(...args, "--by", "pages");
  expect(onServer).toEqual(inDirectory!);
});

test("warnings are the same in both places, unknown keys aside", async () => {
  await server.batch([{ event: "odd", distinct_id: "kim", uuid: "no-uuid" }]);
  await server.eventsWhenStored(2);
  const inDirectory = (await json(["warnings", "--project", "1"], local())) as object[];
  expect(inDirectory).toMatchObject([{ project_id: 1, type: "invalid_uuid", subject: "kim", count: 1 }]);
  expect(await json(["warnings", "--project", "1"], remote())).toEqual(inDirectory);
  await server.post("/capture/", { api_key: "phc_unknown", event: "x", distinct_id: "kim" });
  const types = (found: unknown) => (found as { type: string }[]).map(({ type }) => type);
  expect(types(await json(["warnings"], local()))).toEqual(["unknown_project_key", "invalid_uuid"]);
  expect(types(await json(["warnings"], remote()))).toEqual(["invalid_uuid"]);
});

test("status and doctor print the state of the server in both places", async () => {
  const ofServer = (await json(["status"], remote())) as Record<string, unknown>;
  const inDirectory = (await json(["status"], local())) as Record<string, unknown>;
  expect(ofServer).toMatchObject({ url: server.url, state: "ready", started_at: inDirectory.started_at! });
  expect(Object.keys(ofServer).sort()).toEqual(Object.keys(inDirectory).sort());
  const { stdout } = await flagkeep(["status", ...remote()]);
  expect(stdout).toContain("State     ready, for");
  const [checks, localChecks] = await Promise.all([json(["doctor"], remote()), json(["doctor"], local())]);
  expect(checks).toMatchObject({ ok: true, errors: 0, findings: expect.arrayContaining([]) });
  expect(Object.keys(checks as object)).toEqual(Object.keys(localChecks as object));
});

test("only operators of the server see its status", async () => {
  const { value } = (await json(["keys", "create", "--scope", "project:read", "--label", "x"], remote())) as {
    value: string;
  };
  const called = await flagkeep(["status", "--url", server.url, "--key", value]);
  expect(called).toMatchObject({ code: 1, stdout: "" });
});

test("users are administered as members on a server", async () => {
  const created = await flagkeep(["users", "create", "ann@example.com", ...remote()]);
  expect(created).toEqual({
    code: 2,
    stdout: "",
    stderr:
      "flagkeep: `users create` needs the data directory and does not work with --url. Use `flagkeep members add`.\n",
  });
});
