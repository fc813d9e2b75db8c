/** Experience continuity: identified users keep the values that they had before (contract: flag-evaluation 10). */

import { describe, expect, test } from "bun:test";
import { rolloutPosition } from "../../../src/flags/evaluate/bucketing.ts";
import { explainFlag } from "../../../src/flags/evaluation-context/explanation.ts";
import { FlagSets, groupTypesFrom } from "../../../src/flags/store/flag-sets.ts";
import { withAbortSignal } from "../../../src/lib/cancellation.ts";
import { sanitizeString } from "../../../src/lib/json/canonical.ts";
import { hashKeyOverrides, pendingHashKeyOverrides } from "../../../src/persons/hash-key-overrides.ts";
import { SqlitePersonReader } from "../../../src/persons/sqlite-person-reader.ts";
import { identify, set } from "../../persons/support.ts";
import { until } from "../../support/server.ts";
import { when } from "../make.ts";
import { TestEvaluation } from "./support.ts";

/** An id for which `half` is on, or off. */
function idThatIs(isOn: boolean, name: string): string {
  for (let i = 0; ; i++) if (rolloutPosition("half", `${name}-${i}`) <= 0.5 === isOn) return `${name}-${i}`;
}
const anon = idThatIs(true, "anon");
const user = idThatIs(false, "user");

function start(): TestEvaluation {
  const server = new TestEvaluation();
  server.flag("half", when([], 50), { ensureExperienceContinuity: true });
  server.flag("plain", when([], 50));
  return server;
}
const half = async (server: TestEvaluation, body: Record<string, unknown>) =>
  (await server.values(body)).half as boolean;
const stored = (server: TestEvaluation, id: string) =>
  Object.fromEntries(hashKeyOverrides(server.people.db, 1, [id]));
const pending = (server: TestEvaluation, id: string) =>
  Object.fromEntries(pendingHashKeyOverrides(server.people.db, 1, id, server.micros(0)).overrides);
const explained = (server: TestEvaluation, distinctId: string) =>
  explainFlag(
    new SqlitePersonReader(server.people.db),
    new FlagSets(server.metadata, groupTypesFrom(server.people.db)).get(1).set,
    {
      projectId: 1,
      timezone: "UTC",
      flagKey: "half",
      distinctId,
      now: server.now,
    },
  );

describe("with the former id", () => {
  test("the same request hashes with it, and so do later ones without it", async () => {
    using server = start();
    server.people.apply(set(anon, {}), set(user, {}));
    expect(await half(server, { distinct_id: anon })).toBe(true);
    expect(await half(server, { distinct_id: user })).toBe(false);
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    // Before the engine has stored anything, and after it has.
    expect(await half(server, { distinct_id: user })).toBe(true);
    await until(() => stored(server, user).half, "the override is stored");
    expect(stored(server, user)).toEqual({ half: anon });
    expect(stored(server, anon)).toEqual({ half: anon });
    expect(await half(server, { distinct_id: user })).toBe(true);
  });

  test("only flags with continuity are stored and hashed that way", async () => {
    using server = start();
    server.people.apply(set(user, {}));
    const before = await server.values({ distinct_id: user });
    const after = await server.values({ distinct_id: user, $anon_distinct_id: anon });
    expect(after.plain).toBe(before.plain!);
    await until(() => stored(server, user).half, "the override is stored");
    expect(stored(server, user)).not.toHaveProperty("plain");
  });

  test("the first former id stays", async () => {
    using server = start();
    server.people.apply(set(user, {}));
    await half(server, { distinct_id: user, $anon_distinct_id: anon });
    await until(() => stored(server, user).half, "the override is stored");
    const off = idThatIs(false, "other");
    expect(await half(server, { distinct_id: user, $anon_distinct_id: off })).toBe(true);
    await Bun.sleep(20);
    expect(stored(server, user)).toEqual({ half: anon });
  });

  test("one longer than any real id counts for its own request only", async () => {
    using server = start();
    server.people.apply(set(user, {}));
    const long = idThatIs(true, "long ".repeat(300));
    expect(await half(server, { distinct_id: user, $anon_distinct_id: long })).toBe(true);
    expect(await half(server, { distinct_id: user })).toBe(false);
    expect(server.storeCalls).toBe(0);
  });

  test("without a person: applies immediately to later requests, for five minutes", async () => {
    using server = start();
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    // Before the engine has stored anything, and after it has.
    expect(await half(server, { distinct_id: user })).toBe(true);
    await until(() => pending(server, user).half, "the override is stored");
    expect(await half(server, { distinct_id: user })).toBe(true);
    expect(await half(server, { distinct_id: "somebody", $anon_distinct_id: user })).toBe(true);
    expect((await explained(server, user)).value).toBe(true);
    server.after(300);
    expect(await half(server, { distinct_id: user })).toBe(true);
    server.after(331);
    expect(await half(server, { distinct_id: user })).toBe(false);
  });

  test("no one there: the person that is identified later gets it, also after a restart", async () => {
    using server = start();
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    await until(() => pending(server, user).half, "the override is stored");
    server.people.reopen();
    server.people.apply(identify(user, anon, { receivedMicros: server.micros(300) }));
    expect(stored(server, user)).toEqual({ half: anon });
    server.after(3_600);
    server.restart();
    expect(await half(server, { distinct_id: user })).toBe(true);
  });

  test("no one there: a person identified more than five minutes later is hashed by its own ID", async () => {
    using server = start();
    await half(server, { distinct_id: user, $anon_distinct_id: anon });
    await until(() => pending(server, user).half, "the override is stored");
    server.people.apply(identify(user, anon, { receivedMicros: server.micros(331) }));
    expect(stored(server, user)).toEqual({});
    expect(await half(server, { distinct_id: user })).toBe(false);
  });

  test("no one there: a later request extends the time, and the first former ID stays", async () => {
    using server = start();
    await half(server, { distinct_id: user, $anon_distinct_id: anon });
    await until(() => pending(server, user).half, "the override is stored");
    server.after(240);
    const off = idThatIs(false, "other");
    expect(await half(server, { distinct_id: user, $anon_distinct_id: off })).toBe(true);
    expect(server.storeCalls).toBe(2);
    // One that follows at once has nothing to extend.
    expect(await half(server, { distinct_id: user, $anon_distinct_id: off })).toBe(true);
    expect(server.storeCalls).toBe(2);
    server.people.apply(identify(user, off, { receivedMicros: server.micros(530) }));
    expect(stored(server, user)).toEqual({ half: anon });
  });

  test("an ID that is its own former ID is hashed plainly, and nothing is stored", async () => {
    using server = start();
    expect(await half(server, { distinct_id: anon, $anon_distinct_id: anon })).toBe(true);
    expect(await half(server, { distinct_id: user, $anon_distinct_id: user })).toBe(false);
    expect(server.storeCalls).toBe(0);
  });

  test("the identified person's override wins over that of the former id", async () => {
    using server = start();
    server.people.apply(set(anon, {}), set(user, {}));
    const off = idThatIs(false, "off");
    server.people.db.$client.run(
      "INSERT INTO hash_key_override SELECT person_id, 'half', ?2 FROM distinct_id WHERE distinct_id = ?1",
      [anon, anon],
    );
    server.people.db.$client.run(
      "INSERT INTO hash_key_override SELECT person_id, 'half', ?2 FROM distinct_id WHERE distinct_id = ?1",
      [user, off],
    );
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(false);
    expect(await half(server, { distinct_id: anon })).toBe(true);
  });

  test("an empty former id counts as none", async () => {
    using server = start();
    server.people.apply(set(user, {}));
    expect(await half(server, { distinct_id: user, $anon_distinct_id: "" })).toBe(false);
    expect(server.storeCalls).toBe(0);
  });
});

test("an override survives the merge of the two persons", async () => {
  using server = start();
  server.people.apply(set(anon, {}));
  await half(server, { distinct_id: user, $anon_distinct_id: anon });
  await until(() => stored(server, anon).half, "the override is stored");
  server.people.apply(identify(user, anon));
  expect(stored(server, user)).toEqual({ half: anon });
  expect(await half(server, { distinct_id: user })).toBe(true);
});

test("a stored override counts also when the flag's continuity was switched off", async () => {
  using server = new TestEvaluation();
  const flag = server.flag("half", when([], 50), { ensureExperienceContinuity: true });
  server.people.apply(set(user, {}));
  await half(server, { distinct_id: user, $anon_distinct_id: anon });
  await until(() => stored(server, user).half, "the override is stored");
  server.change(flag, { ensureExperienceContinuity: false });
  expect(await half(server, { distinct_id: user })).toBe(true);
});

test("the queue continues when the client of its first request has disconnected", async () => {
  using server = start();
  const deleted = new AbortController();
  const sent = withAbortSignal(deleted.signal, () =>
    half(server, { distinct_id: user, $anon_distinct_id: anon }),
  );
  deleted.abort();
  await sent;
  await until(() => pending(server, user).half, "the override is stored");
  expect(server.callers).toEqual([undefined]);
});

test("the response waits until the override is stored, but not for an engine that is down", async () => {
  using server = start();
  const asked = { distinct_id: user, $anon_distinct_id: anon };
  await half(server, asked);
  expect(pending(server, user)).toEqual({ half: anon });
  server.engineIsDown = true;
  await half(server, { ...asked, distinct_id: "other" });
  const from = performance.now();
  for (let number = 0; number < 20; number++) await half(server, { ...asked, distinct_id: `more-${number}` });
  // One wait after another would be four seconds.
  expect(performance.now() - from).toBeLessThan(2_000);
});

test("a stop waits for what is queued, but not forever", async () => {
  using server = start();
  server.engineIsDown = true;
  await half(server, { distinct_id: user, $anon_distinct_id: anon });
  await server.overrides.settle(1);
  expect(pending(server, user)).toEqual({});
  server.engineIsDown = false;
  await server.overrides.settle(60_000);
  expect(pending(server, user)).toEqual({ half: anon });
});

test("an ID with NUL is that of the person who is stored under what capture makes of it", async () => {
  using server = start();
  await half(server, { distinct_id: `${user}\u0000`, $anon_distinct_id: anon });
  await until(() => pending(server, sanitizeString(`${user}\u0000`)).half, "the override is stored");
  expect(await half(server, { distinct_id: `${user}\u0000` })).toBe(true);
  const calls = server.storeCalls;
  await half(server, { distinct_id: "third", $anon_distinct_id: `${anon}\u0000` });
  expect(server.storeCalls).toBe(calls);
});

describe("while the engine is down", () => {
  test("answers come, hash rightly, and the override is stored when it is back", async () => {
    using server = start();
    server.people.apply(set(user, {}));
    server.engineIsDown = true;
    const body = await server.ask({ distinct_id: user, $anon_distinct_id: anon });
    expect(body).toMatchObject({ errorsWhileComputingFlags: false, flags: { half: { enabled: true } } });
    await until(() => server.storeCalls >= 2, "it was tried again");
    expect(stored(server, user)).toEqual({});
    expect(await half(server, { distinct_id: user })).toBe(true);
    server.engineIsDown = false;
    await until(() => stored(server, user).half, "the override is stored");
    expect(server.errors).toEqual([]);
  });

  test("the first former id is kept too, for the identified person and the former one", async () => {
    using server = start();
    server.people.apply(set(user, {}));
    server.engineIsDown = true;
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    const off = idThatIs(false, "other");
    expect(await half(server, { distinct_id: user, $anon_distinct_id: off })).toBe(true);
    const another = idThatIs(false, "another");
    expect(await half(server, { distinct_id: another, $anon_distinct_id: user })).toBe(true);
    expect(stored(server, user)).toEqual({});
  });
});
