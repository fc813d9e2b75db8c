/** Experience continuity: whoever is identified keeps the values seen before (contract: flag-evaluation 10). */

import { describe, expect, test } from "bun:test";
import { rolloutPlace } from "../../../src/flags/evaluate/bucketing.ts";
import { hashKeyOverrides } from "../../../src/people/hash-key-overrides.ts";
import { identify, set } from "../../people/support.ts";
import { until } from "../../support/appliance.ts";
import { when } from "../make.ts";
import { TestEvaluation } from "./support.ts";

/** An id for which `half` is on, or off. */
function idThatIs(isOn: boolean, name: string): string {
  for (let i = 0; ; i++) if (rolloutPlace("half", `${name}-${i}`) <= 0.5 === isOn) return `${name}-${i}`;
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

  test("nobody there: this request hashes with it, nothing is stored, the next one hashes plainly", async () => {
    using server = start();
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    expect(server.storeCalls).toBe(0);
    expect(await half(server, { distinct_id: user })).toBe(false);
    server.people.apply(set(user, {}));
    expect(await half(server, { distinct_id: user })).toBe(false);
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

describe("events that are on their way", () => {
  test("an event accepted before makes the person, and the override is stored then", async () => {
    using server = start();
    server.positions = { accepted: 5, applied: 4 };
    expect(await half(server, { distinct_id: user, $anon_distinct_id: anon })).toBe(true);
    // Nobody is there yet, so later requests are not promised anything.
    expect(await half(server, { distinct_id: user })).toBe(false);
    server.people.apply(set(user, {}));
    server.positions = { accepted: 5, applied: 5 };
    await until(() => stored(server, user).half, "the override is stored");
    expect(await half(server, { distinct_id: user })).toBe(true);
  });

  test("a person made by an event accepted later gets none", async () => {
    using server = start();
    server.positions = { accepted: 5, applied: 4 };
    await half(server, { distinct_id: user, $anon_distinct_id: anon });
    server.positions = { accepted: 6, applied: 5 };
    // They are tried in turn: what becomes of somebody who may still get one tells that the first is out of it.
    await half(server, { distinct_id: "later", $anon_distinct_id: anon });
    const triesFor = (id: string) => server.handedOver.filter((each) => each === id).length;
    await until(() => triesFor("later") >= 1, "both had their turn");
    const tries = triesFor(user);
    await until(() => triesFor("later") >= 3, "the other one had more turns");
    expect(triesFor(user)).toBe(tries);
    server.positions = { accepted: 6, applied: 6 };
    server.people.apply(set(user, {}));
    expect(await half(server, { distinct_id: user })).toBe(false);
  });
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
    expect(server.troubles).toEqual([]);
  });

  test("the first former id stays here too, for the identified person and for whom it is the former one", async () => {
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
