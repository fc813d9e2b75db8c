/** Webhooks of the executable: a crash between a change and its delivery, a command while the server runs, the console's routes. */

import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { summaryWeek } from "../../../src/operate/webhooks/sources.ts";
import { paths } from "../../../src/paths.ts";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../../support/server.ts";
import { isSigned, Receiver } from "./support.ts";

const receiver = new Receiver();
afterAll(() => receiver[Symbol.dispose]());
const allowed = ["--webhook-allowed-networks", "127.0.0.1"];

test("changes made by commands and by a server that was killed are delivered once it runs again", async () => {
  const directory = await initializedDirectory();
  const local = ["--data-dir", directory.dataDir];
  const json = async (...args: string[]) => {
    const { stdout, stderr, code } = await flagkeep([...args, ...local, "--json"]);
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    return JSON.parse(stdout);
  };
  const hook = await json("webhooks", "create", "--webhook-url", `${receiver.url}/hook`, ...allowed);
  await json("flags", "create", "offline");
  // It accepts the change, and its receiver does not answer until it is killed.
  receiver.answer = () => new Promise<Response>(() => undefined);
  const first = await ServerProcess.start({ directory, args: allowed });
  const created = await first.api("/api/projects/1/feature_flags/", {
    method: "POST",
    body: { key: "online" },
  });
  expect(created.status).toBe(201);
  await until(() => receiver.received.length === 1, "the first request arrived");
  first.process.kill("SIGKILL");
  await first.process.exited;
  receiver.answer = () => new Response("ok");
  await using second = await ServerProcess.start({ directory, args: allowed });
  const keys = () => receiver.received.map(({ body }) => body.data.flag.key);
  await until(() => keys().length === 3, "both changes were delivered");
  expect(keys()).toEqual(["offline", "offline", "online"]);
  const [interrupted, repeated] = receiver.received.map(({ headers }) => headers.get("x-flagkeep-delivery"));
  expect(repeated).toBe(interrupted!);
  expect(receiver.received.every((request) => isSigned(request, hook.secret))).toBe(true);
  expect(receiver.received[2]!.body.url).toStartWith(
    `${second.url.replace("localhost", "127.0.0.1")}/console/flags/`,
  );
  expect(await json("webhooks", "test", "1")).toMatchObject({
    state: "delivered",
    status: 200,
    event: "test",
  });
  // A result is stored after the response of the receiver.
  const deliveries = await until(async () => {
    const found = (await json("webhooks", "deliveries", "1")) as { state: string }[];
    return found.every(({ state }) => state !== "pending") && found;
  }, "the results are stored");
  expect(deliveries).toMatchObject([
    { event: "test", state: "delivered" },
    { item: "online", state: "delivered" },
    { item: "offline", state: "delivered" },
  ]);
}, 60_000);

test("a server without the setting rejects what a command with it has saved, and calls nothing", async () => {
  const directory = await initializedDirectory();
  const local = ["--data-dir", directory.dataDir];
  const before = receiver.received.length;
  await flagkeep(["webhooks", "create", "--webhook-url", `${receiver.url}/`, ...allowed, ...local]);
  await using _ = await ServerProcess.start({ directory });
  const { stdout } = await flagkeep(["webhooks", "test", "1", ...local]);
  expect(stdout).toStartWith("Not delivered: 127.0.0.1 is an address of this machine");
  expect(receiver.received.length).toBe(before);
}, 60_000);

test("a weekly summary has the visitors and page views of the week", async () => {
  const directory = await initializedDirectory();
  await using server = await ServerProcess.start({ directory, args: allowed });
  const week = Date.parse(summaryWeek({ timezone: "UTC", weekStartDay: null }, new Date()));
  const dayMs = 86_400_000;
  const view = (user: string, daysBefore: number) => ({
    event: "$pageview",
    distinct_id: user,
    timestamp: new Date(week - daysBefore * dayMs).toISOString(),
    properties: { $session_id: `${user} ${daysBefore}`, $pathname: "/" },
  });
  await server.batch([view("a", 1), view("a", 2), view("b", 7), view("b", 8), view("b", 0)]);
  await server.eventsWhenStored(5);
  const { status } = await server.api("/api/projects/1/webhooks/", {
    method: "POST",
    body: { url: `${receiver.url}/weekly`, events: ["weekly_summary"] },
  });
  expect(status).toBe(201);
  // As if the last summary had been sent long ago.
  using metadata = new Database(paths(directory.dataDir).metadata);
  metadata.run("UPDATE webhook SET summary_week = '2026-01-05'");
  const received = () => receiver.received.find(({ path }) => path === "/weekly")?.body;
  await until(() => received() !== undefined, "the summary arrived", 30_000);
  expect(received().text).toContain(
    ": 2 visitors (1 the week before), 3 page views (1 the week before), 0 events (0 the week before), ",
  );
  expect(received().data).toMatchObject({ visitors: 2, page_views: 3, page_views_previous: 1 });
}, 60_000);
