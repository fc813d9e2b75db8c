/** Events as they arrive: the started executable, and the limits of the readers. */

import { expect, test } from "bun:test";
import { revokeKey } from "../../../src/accounts/personal-keys.ts";
import { LiveEvents, liveRoutes } from "../../../src/events/api/live.ts";
import { EntryWriter } from "../../../src/journal/entry.ts";
import { TestServer } from "../../support/management-server.ts";
import { ServerProcess, until } from "../../support/server.ts";
import { expectWithin } from "../../support/times.ts";

interface Message {
  kind: string;
  // biome-ignore lint/suspicious/noExplicitAny: rows of any event.
  data: any;
}

/** Collects what a stream says. */
function read(body: ReadableStream<Uint8Array>) {
  const messages: Message[] = [];
  const state = { messages, comments: 0, isOver: false, isCut: false };
  void (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    try {
      for await (const chunk of body) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
        rest = parts.pop()!;
        for (const part of parts) {
          const found = /^event: (\w+)\ndata: (.*)$/.exec(part);
          if (found) messages.push({ kind: found[1]!, data: JSON.parse(found[2]!) });
          else state.comments++;
        }
      }
    } catch {
      state.isCut = true;
    }
    state.isOver = true;
  })();
  return state;
}

const names = ({ messages }: { messages: Message[] }) =>
  messages.filter(({ kind }) => kind === "event").map(({ data }) => data.event);

test("a captured event shows immediately, for all readers, and with the engine down", async () => {
  await using server = await ServerProcess.start();
  const stream = async (query = "") => {
    const aborter = new AbortController();
    const response = await fetch(`${server.url}/api/projects/1/events/stream/${query}`, {
      headers: { Authorization: `Bearer ${server.initialized.personal_api_key}` },
      signal: aborter.signal,
    });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
    return { state: read(response.body!), aborter };
  };
  const all = await stream();
  const some = await stream(`?event=${encodeURIComponent('say "hi"')}&distinct_id=ann`);
  for (const pid of await server.enginePids()) process.kill(pid, "SIGSTOP");
  await server.batch([
    { event: "first", distinct_id: "ann", properties: { text: "<img onerror=alert(1)>", n: 1 } },
    { event: 'say "hi"', distinct_id: "ann" },
    { event: 'say "hi"', distinct_id: "bob" },
  ]);
  await until(() => all.state.messages.length === 3, "three events came");
  for (const pid of await server.enginePids()) process.kill(pid, "SIGCONT");
  expect(names(all.state)).toEqual(["first", 'say "hi"', 'say "hi"']);
  expect(all.state.messages[0]!.data).toMatchObject({
    event: "first",
    distinct_id: "ann",
    historical: false,
    is_cut: false,
    seq: 1,
    properties: { text: "<img onerror=alert(1)>", n: 1 },
  });
  await until(() => some.state.messages.length === 1, "the wanted one came");
  expect(some.state.messages[0]!.data.distinct_id).toBe("ann");
  await expectWithin(1_000, async () => {
    const known = some.state.messages.length;
    await server.capture({ event: 'say "hi"', distinct_id: "ann" });
    await until(() => some.state.messages.length > known, "another one came");
  });
  await server.batch([{ event: "long", distinct_id: "ann", properties: { text: "x".repeat(100_000) } }]);
  await until(() => names(all.state).includes("long"), "the long one came");
  expect(all.state.messages.at(-1)!.data).toMatchObject({ event: "long", is_cut: true, properties: {} });
  await server.batch(Array.from({ length: 300 }, (_, n) => ({ event: "many", distinct_id: `d${n}` })));
  const skipped = await until(
    () => all.state.messages.find(({ kind }) => kind === "skipped"),
    "the rest is counted",
  );
  const shown = names(all.state).filter((name) => name === "many").length;
  expect(shown).toBeLessThanOrEqual(50);
  expect(shown + skipped.data.count).toBe(300);
  // What delays the end is cut off once the time for requests in flight has passed.
  expect(await server.stop()).toBe(0);
  for (const { state } of [all, some]) {
    await until(() => state.isOver, "the stream ends with the server");
    expect(state.isCut).toBe(false);
  }
}, 60_000);

/** One entry of the journal. */
const entry = (n: number, projectId = 1) =>
  new EntryWriter(projectId, 1, false).event({
    uuid: Bun.randomUUIDv7(),
    name: "e",
    distinctId: `d${n}`,
    time: 1,
    elementsChain: null,
    properties: "{}",
    mode: "full",
    hasGeneratedUuid: true,
  } as never);
const journal = { append: async () => 1 };

test("a reader that does not read loses rows and holds no one up; the memory stays", async () => {
  const live = new LiveEvents();
  const reader = { projectId: 1, event: undefined, distinctId: undefined, isStillAllowed: () => true };
  const body = live.open(reader, new AbortController().signal).body!;
  const watched = live.watching(journal);
  const before = process.memoryUsage.rss();
  for (let second = 0; second < 3; second++) {
    for (let n = 0; n < 200; n++)
      await watched.append(
        "realtime",
        Array.from({ length: 100 }, (_, at) => entry(at)),
      );
  }
  expect(process.memoryUsage.rss() - before).toBeLessThan(100 * 1024 * 1024);
  const state = read(body);
  const skipped = await until(
    () => state.messages.find(({ kind }) => kind === "skipped"),
    "it is told what it missed",
  );
  expect(skipped.data.count).toBeGreaterThan(59_000);
});

test("an event whose name is longer than a row is skipped, and delays no reader", async () => {
  const live = new LiveEvents();
  const reader = { projectId: 1, event: undefined, distinctId: undefined, isStillAllowed: () => true };
  const state = read(live.open(reader, new AbortController().signal).body!);
  const long = (distinctId: string) =>
    new EntryWriter(1, 1, false).event({
      uuid: Bun.randomUUIDv7(),
      name: "e",
      distinctId,
      time: 1,
      elementsChain: null,
      properties: "{}",
      mode: "full",
      hasGeneratedUuid: true,
    } as never);
  for (const id of ["d".repeat(1_000_000), "\n".repeat(9_000_000)])
    await expectWithin(300, async () => void (await live.watching(journal).append("realtime", [long(id)])));
  await live.watching(journal).append("realtime", [entry(1)]);
  await until(() => names(state).length === 1, "the usual one came");
  const skipped = await until(
    () => state.messages.find(({ kind }) => kind === "skipped"),
    "the others are counted",
  );
  expect(skipped.data.count).toBeGreaterThanOrEqual(2);
});

test("events of other projects, and notes, are no one's rows", async () => {
  const live = new LiveEvents();
  const reader = { projectId: 1, event: undefined, distinctId: undefined, isStillAllowed: () => true };
  const state = read(live.open(reader, new AbortController().signal).body!);
  const note = new EntryWriter(1, 1, false).note("warning", {
    type: "missing_event_name",
    details: {},
  } as never);
  await live.watching(journal).append("realtime", [note, entry(1, 11), entry(2, 2), entry(3)]);
  await until(() => state.messages.length > 0, "a row came");
  expect(state.messages.map(({ data }) => [data.distinct_id, data.seq])).toEqual([["d3", 4]]);
});

test("200 concurrent readers; the next one is rejected", async () => {
  const live = new LiveEvents();
  const reader = { projectId: 1, event: undefined, distinctId: undefined, isStillAllowed: () => true };
  const aborter = new AbortController();
  for (let n = 0; n < 200; n++) live.open(reader, aborter.signal);
  expect(() => live.open(reader, aborter.signal)).toThrow("Too many streams");
  aborter.abort();
  expect(() => live.open(reader, new AbortController().signal)).not.toThrow();
});

test("a stream ends when its key is revoked", async () => {
  const live = new LiveEvents();
  using server = new TestServer({ routes: liveRoutes({ live }) });
  const key = server.key(["event:read"]);
  const response = await server.app.handle(
    new Request("http://localhost/api/projects/1/events/stream/", {
      headers: { authorization: `Bearer ${key}` },
    }),
  );
  const state = read(response.body!);
  await until(() => state.comments > 0, "the stream is there");
  const keys = (await server.ask("GET", "/api/personal_api_keys/")).body as {
    id: string;
    scopes: string[];
  }[];
  revokeKey(server.metadata, keys.find(({ scopes }) => scopes[0] === "event:read")!.id);
  await until(() => state.isOver, "the stream ends", 10_000);
}, 20_000);
