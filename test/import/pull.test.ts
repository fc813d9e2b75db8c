/** A PostHog project is copied through its API and loaded: our own server plays it, and one that begins with the newest. */

import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { PostHogApi, SourceRejectedError } from "../../src/import/pull/posthog-api.ts";
import { pullProject } from "../../src/import/pull/pull.ts";
import type { ImportSummary } from "../../src/import/summary.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

test("everything is copied, also after a rejection in the middle and with a busy server", async () => {
  await using source = await ServerProcess.start();
  const count = 2_500;
  /** The first ones are of another time than one would think of. */
  const invalid = ["1912-06-23T00:00:00.000Z", "1985-10-26T08:18:00.000Z", "2095-01-01T00:00:00.000Z"];
  const timestamp = (n: number) =>
    invalid[n] ?? new Date(Date.UTC(2025, 0, 1) + Math.floor(n / 7) * 1_000).toISOString();
  await source.batch(
    Array.from({ length: count }, (_, n) => ({
      event: n === 5 ? "$autocapture" : `e${n % 9}`,
      distinct_id: `u${n % 40}`,
      timestamp: timestamp(n),
      properties: { n, $set: { n }, ...(n === 5 ? { $elements: [{ tag_name: "a", $el_text: "x" }] } : {}) },
    })),
    { historical_migration: true },
  );
  await source.batch([
    {
      event: "$identify",
      distinct_id: "u1",
      properties: { $anon_distinct_id: "anon" },
      timestamp: timestamp(1),
    },
    {
      event: "$groupidentify",
      distinct_id: "u1",
      timestamp: timestamp(1),
      properties: { $group_type: "org", $group_key: "acme", $group_set: { size: 3 } },
    },
  ]);
  const before = await source.eventsWhenStored(count + 2);
  const flagsPath = `/api/projects/${source.initialized.project.id}`;
  const cohort = {
    name: "big",
    filters: {
      properties: {
        type: "AND",
        values: [{ type: "AND", values: [{ key: "n", type: "person", value: "7", operator: "exact" }] }],
      },
    },
  };
  const created = (await (
    await source.api(`${flagsPath}/cohorts/`, { method: "POST", body: cohort })
  ).json()) as { id: number };
  const filters = {
    groups: [{ properties: [{ key: "id", type: "cohort", value: created.id }], rollout_percentage: 50 }],
  };
  const flag = { key: "beta", name: "Beta", filters, tags: [], evaluation_contexts: ["web"] };
  expect((await source.api(`${flagsPath}/feature_flags/`, { method: "POST", body: flag })).status).toBe(201);

  // Between the two stands a server that is busy at times, and rejects from the third page of events on.
  let isRefusing = true;
  let eventPages = 0;
  let requests = 0;
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      requests += 1;
      if (requests % 4 === 2) return new Response(null, { status: 503 });
      if (pathname.endsWith("/events/")) {
        if (isRefusing && eventPages === 2) return Response.json({ detail: "Not now." }, { status: 403 });
        eventPages += 1;
      }
      // As it comes: an answer that was unpacked here must not say that it is packed.
      return await fetch(`${source.url}${pathname}${search}`, {
        headers: request.headers,
        decompress: false,
      });
    },
  });
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, `${source.initialized.personal_api_key}\n`);
  const args = [
    "import",
    `http://127.0.0.1:${proxy.port}`,
    "--key-file",
    keyFile,
    "--json",
    "--data-dir",
    dataDir,
  ];
  const rejected = await flagkeep(args);
  expect(rejected).toMatchObject({ code: 1, stdout: "" });
  expect(rejected.stderr).toContain("Not now.");
  isRefusing = false;
  const { stdout, stderr, code } = await flagkeep([...args, "--resume"]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  // Pages of 1,000; none was asked for twice.
  expect(eventPages).toBe(3);
  const summary = JSON.parse(stdout) as ImportSummary;
  expect(summary).toMatchObject({
    rejected: 0,
    duplicate: 0,
    complete: true,
    flags: { created: 2, updated: 0 },
  });
  await proxy.stop(true);

  await using target = await ServerProcess.start({ directory });
  const stored = (await target.query(
    "SELECT uuid, event, distinct_id, timestamp, properties, elements_chain FROM events ORDER BY seq",
  )) as unknown as typeof before;
  const bare = ({ uuid, event, distinct_id, timestamp: at, elements_chain }: (typeof before)[number]) => [
    uuid,
    event,
    distinct_id,
    Date.parse(at),
    elements_chain || null,
  ];
  expect(stored.slice(0, before.length).map(bare)).toEqual(before.map(bare));
  const persons =
    "SELECT distinct_ids, prop('n') AS n FROM persons WHERE prop('n') IS NOT NULL ORDER BY distinct_ids[1]";
  expect(await target.query(persons)).toEqual(await source.query(persons));
  expect(JSON.stringify(await target.query("SELECT type, key, properties FROM groups"))).toBe(
    JSON.stringify(await source.query("SELECT type, key, properties FROM groups")),
  );
  const flags = await flagkeep(["flags", "export", "--json", "--data-dir", dataDir]);
  expect(JSON.parse(flags.stdout)).toMatchObject({
    cohorts: [{ name: "big" }],
    flags: [{ key: "beta", name: "Beta", evaluation_contexts: ["web"] }],
  });
  expect(readdirSync(join(dataDir, "import-state"))).toEqual([]);
}, 180_000);

test("a server that begins with the newest: oldest first, nothing lost where times are equal; the key stays with it", async () => {
  const event = (id: number, second: number) => ({
    id: `id-${id}`,
    event: `e${id}`,
    distinct_id: "u",
    properties: {},
    person: null,
    timestamp: new Date(Date.UTC(2025, 0, 1) + second * 1_000).toISOString(),
  });
  // Pages of two; three have the same time.
  const all = [event(1, 1), event(2, 2), event(3, 2), event(4, 2), event(5, 3)];
  const once = "performed_event";
  const behaviors: [name: string | null, value: string][] = [
    ["Once", once],
    ["In order", "performed_event_sequence"],
    ["Once", once],
    [null, once],
  ];
  const cohorts = behaviors.map(([name, value], index) => {
    const values = [{ type: "behavioral", key: "paid", value, time_value: 7, time_interval: "day" }];
    return { id: index + 1, name, filters: { properties: { type: "OR", values } } };
  });
  // Of the third, of one that cannot be computed here, and of one that was deleted.
  const getFlag = (id: number, key: string, property: object) => ({
    id,
    key,
    name: "",
    active: true,
    filters: { groups: [{ properties: [property], rollout_percentage: 100 }] },
  });
  const featureFlags = [
    getFlag(11, "third", { key: "id", type: "cohort", value: 3 }),
    getFlag(12, "in-order", { key: "id", type: "cohort", value: 2 }),
    getFlag(13, "deleted", { key: "id", type: "cohort", value: 99 }),
  ];
  const keys = new Set<string | null>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      keys.add(request.headers.get("authorization"));
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/sub/api/projects/")
        return Response.json({ results: [{ id: 7, name: "x" }], next: null });
      if (pathname === "/sub/api/projects/7/feature_flags/")
        return Response.json({ results: featureFlags, next: null });
      if (pathname === "/sub/api/projects/7/cohorts/") return Response.json({ results: cohorts, next: null });
      if (!pathname.startsWith("/sub/api/projects/7/events")) return Response.json([]);
      const before = Date.parse(searchParams.get("before") ?? "2100-01-01");
      const found = all.filter(({ timestamp }) => Date.parse(timestamp) < before).reverse();
      const results = found.slice(0, 3);
      // As it would be behind a proxy that it knows nothing of.
      const next = `https://other.example/api/projects/7/events/?before=${results.at(-1)?.timestamp}`;
      return Response.json({ results, next: found.length > 3 ? next : null });
    },
  });
  const api = new PostHogApi(`http://127.0.0.1:${server.port}/sub`, "phx_key");
  const options = {
    project: undefined,
    folder: join(folder, "copy"),
    isResumed: false,
    lists: [],
    onRecords: () => {},
  };
  const { folder: records, flags, renamed } = await pullProject(api, options);
  expect(flags.cohorts.map(({ name }) => name)).toEqual(["Cohort 4", "In order", "Once", "Once (2)"]);
  const using = (reference: object) => ({ groups: [{ properties: [{ type: "cohort", ...reference }] }] });
  expect(flags.flags).toMatchObject([
    { key: "deleted", filters: using({ value: 99 }) },
    { key: "in-order", filters: using({ cohort: "In order" }) },
    { key: "third", filters: using({ cohort: "Once (2)" }) },
  ]);
  expect(renamed).toEqual(['Several cohorts are named "Once": one is imported as "Once (2)".']);
  const pages = readdirSync(records).sort();
  const names = pages.flatMap((page) =>
    Bun.zstdDecompressSync(readFileSync(join(records, page)))
      .toString()
      .trim()
      .split("\n")
      .map((line: string) => JSON.parse(line).event),
  );
  expect(names).toEqual(["e1", "e2", "e3", "e4", "e5"]);
  expect([...keys]).toEqual(["Bearer phx_key"]);
  await server.stop(true);
});

test("a project without events: flags that would match other users are imported turned off", async () => {
  const getFlag = (id: number, key: string, properties: object[]) => ({
    id,
    key,
    name: "",
    active: true,
    filters: { groups: [{ properties, rollout_percentage: 100 }] },
  });
  const person = { type: "person", operator: "regex", key: "email" };
  const inCohort = (value: number) => ({ type: "cohort", key: "id", value });
  const sequence = { type: "behavioral", key: "paid", value: "performed_event_sequence" };
  const cohorts = [
    { id: 1, name: "In order", filters: { properties: { type: "OR", values: [sequence] } } },
    { id: 2, name: "Listed", is_static: true },
  ];
  const featureFlags = [
    getFlag(1, "plain", []),
    // Patterns run in linear time here.
    getFlag(2, "ahead", [{ ...person, value: "(?=a)b" }]),
    getFlag(3, "behind", [{ type: "flag", key: "2", value: true, operator: "flag_evaluates_to" }]),
    getFlag(4, "in-order", [inCohort(1)]),
    getFlag(5, "deleted", [inCohort(99)]),
    getFlag(6, "listed", [inCohort(2)]),
  ];
  await using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/api/projects/") return Response.json({ results: [{ id: 1, name: "x" }] });
      if (pathname.endsWith("/cohorts/")) return Response.json({ results: cohorts });
      return Response.json({ results: pathname.endsWith("/feature_flags/") ? featureFlags : [] });
    },
  });
  const { dataDir } = await initializedDirectory();
  const pull = () =>
    flagkeep(["import", `http://127.0.0.1:${server.port}`, "--json", "--data-dir", dataDir], {
      POSTHOG_PERSONAL_API_KEY: "phx_key",
    });
  const { stdout, stderr, code } = await pull();
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  const obstacles = [
    expect.stringMatching(/^Not taken over: cohort "In order": .*performed_event_sequence/),
    expect.stringMatching(/^Not taken over: flag ahead, rule 1: .*look-ahead/),
    expect.stringMatching(/^Not taken over: flag behind, rule 1: .*flag ahead, which is imported turned off/),
    expect.stringMatching(/^Not taken over: flag deleted, rule 1: .*99/),
    expect.stringMatching(/^Not taken over: flag in-order, rule 1: .*"In order"/),
    expect.stringMatching(/^Not taken over: flag listed, rule 1: .*static cohort "Listed"/),
  ];
  const { remarks, ...counts } = JSON.parse(stdout).flags;
  expect(counts).toEqual({ created: 7, updated: 0 });
  expect(remarks).toEqual(expect.arrayContaining(obstacles));
  expect(remarks.filter((line: string) => line.startsWith("Not taken over"))).toHaveLength(obstacles.length);
  expect(remarks).toContainEqual(
    expect.stringContaining("turned off: ahead, behind, deleted, in-order, listed."),
  );
  const retained = await flagkeep(["flags", "list", "--json", "--data-dir", dataDir]);
  expect(
    JSON.parse(retained.stdout).map(({ key, active }: { key: string; active: boolean }) => [key, active]),
  ).toEqual([
    ...["ahead", "behind", "deleted", "in-order", "listed"].map((key) => [key, false]),
    ["plain", true],
  ]);
  expect(JSON.parse((await pull()).stdout).flags).toMatchObject({ created: 0, updated: 0 });
  rmSync(dataDir, { recursive: true });
}, 60_000);

test("into the data directory of the current folder by default", async () => {
  await using source = await ServerProcess.start();
  await source.capture({ event: "e", distinct_id: "a" });
  await source.eventsWhenStored(1);
  const flag = { key: "beta", filters: { groups: [{ rollout_percentage: 100 }] } };
  const path = `/api/projects/${source.initialized.project.id}/feature_flags/`;
  expect((await source.api(path, { method: "POST", body: flag })).status).toBe(201);
  const { dataDir } = await initializedDirectory();
  const env = { POSTHOG_PERSONAL_API_KEY: source.initialized.personal_api_key };
  const { code, stdout, stderr } = await flagkeep(["import", source.url, "--json"], env, dirname(dataDir));
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toMatchObject({ accepted: 2, flags: { created: 1 } });
  rmSync(dirname(dataDir), { recursive: true });
});

test("servers that reject, redirect, respond nonsense or never respond end with a sentence", async () => {
  const noPause = () => Promise.resolve();
  for (const [answer, words] of [
    [() => Response.json({ detail: "bad key" }, { status: 401 }), "bad key"],
    [() => Response.redirect("https://other.example/"), "302"],
    [() => new Response("<html>"), "no list"],
    [() => Response.json({ a: 1 }), "no list"],
    [() => new Response(null, { status: 500 }), "does not respond"],
    [() => Response.json({ results: [{ id: 1 }, { id: 2 }] }), "several projects"],
    [() => Response.json({ results: [] }), "no project"],
  ] as [() => Response, string][]) {
    const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
    const api = new PostHogApi(`http://127.0.0.1:${server.port}`, "k", noPause);
    const failure = await api.onlyProject().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(SourceRejectedError);
    expect((failure as Error).message).toContain(words);
    await server.stop(true);
  }
  const { dataDir } = await initializedDirectory();
  const without = await flagkeep(["import", "http://127.0.0.1:9", "--data-dir", dataDir]);
  expect(without).toMatchObject({ code: 1 });
  expect(without.stderr).toContain("POSTHOG_PERSONAL_API_KEY");
  expect(existsSync(join(dataDir, "import-state"))).toBe(false);
});
