import { expect, test } from "bun:test";
import {
  MaterializationPolicy,
  materializationRules,
  type PropertyStore,
} from "../../src/events/materialized-columns.ts";

const day = 86_400_000;

/** A store whose columns are filled by one piece. */
class FakeStore implements PropertyStore {
  promoted: string[] = [];
  isFilling = false;
  count = 1_000_000;
  tooLong = new Set<string>();

  async rows() {
    return this.count;
  }
  async add(names: readonly string[]) {
    this.promoted.push(...names);
    this.isFilling = true;
  }
  async retire(name: string) {
    this.promoted = this.promoted.filter((other) => other !== name);
  }
  async fillChunk() {
    this.isFilling = false;
    return this.promoted.filter((name) => this.tooLong.has(name));
  }
}

function start(rules: Partial<typeof materializationRules> = {}, store = new FakeStore()) {
  const clock = { now: 1_000 * day };
  const promotion = new MaterializationPolicy(store, { ...materializationRules, ...rules }, () => clock.now);
  const ask = (name: string, times: number) => {
    for (let time = 0; time < times; time++) promotion.recordUse([name]);
  };
  const settle = async () => {
    while (await promotion.step());
  };
  return { store, clock, promotion, ask, settle };
}

test("a property is promoted after enough queries", async () => {
  const { store, ask, settle } = start();
  ask("plan", materializationRules.usesWanted - 1);
  await settle();
  expect(store.promoted).toEqual([]);
  ask("plan", 1);
  await settle();
  expect(store.promoted).toEqual(["plan"]);
});

test("uses long ago count for less", async () => {
  const { store, clock, ask, settle } = start();
  ask("plan", materializationRules.usesWanted - 1);
  clock.now += 2 * materializationRules.halfLifeMs;
  ask("plan", 1);
  await settle();
  expect(store.promoted).toEqual([]);
});

test("where there are few events the JSON is quick enough", async () => {
  const { store, ask, settle } = start();
  store.count = materializationRules.rowsMin - 1;
  ask("plan", 100);
  await settle();
  expect(store.promoted).toEqual([]);
});

test("a full store swaps the least used column only for a much more used property", async () => {
  const { store, ask, settle } = start({ columnsMax: 2 });
  ask("one", 10);
  ask("two", 5);
  await settle();
  ask("three", 9);
  await settle();
  expect(store.promoted).toEqual(["one", "two"]);
  ask("three", 1);
  await settle();
  expect(store.promoted.toSorted()).toEqual(["one", "three"]);
});

test("an unused column is dropped", async () => {
  const { store, clock, ask, settle } = start();
  ask("plan", 3);
  ask("city", 3);
  await settle();
  clock.now += materializationRules.unusedMs - day;
  ask("plan", 1);
  clock.now += 2 * day;
  await settle();
  expect(store.promoted).toEqual(["plan"]);
});

test("columns of an earlier start are kept for as long as if they had just been queried", async () => {
  const store = new FakeStore();
  store.promoted = ["old"];
  const { clock, settle } = start({}, store);
  await settle();
  expect(store.promoted).toEqual(["old"]);
  clock.now += materializationRules.unusedMs + day;
  await settle();
  expect(store.promoted).toEqual([]);
});

test("fewer columns than there are: the least used ones go", async () => {
  const store = new FakeStore();
  store.promoted = ["one", "two", "three"];
  const { ask, settle } = start({ columnsMax: 1 }, store);
  ask("two", 1);
  await settle();
  expect(store.promoted).toEqual(["two"]);
});

test("what does not fit a column is not tried again", async () => {
  const { store, ask, settle } = start();
  store.tooLong.add("html");
  ask("html", 3);
  await settle();
  ask("html", 100);
  await settle();
  expect(store.promoted).toEqual([]);
});

test("names are remembered up to a limit, and long ones never", async () => {
  const { store, promotion, ask, settle } = start({ namesMax: 10 });
  ask("first", 2);
  for (let index = 0; index < 20; index++) promotion.recordUse([`name ${index}`]);
  ask("first", 2);
  ask("x".repeat(materializationRules.nameLengthMax + 1), 100);
  await settle();
  expect(store.promoted).toEqual([]);
});

test("pinned properties have columns beyond the limit, whatever queries read", async () => {
  const { store, clock, promotion, ask, settle } = start({ columnsMax: 1 });
  store.count = 10;
  promotion.pin(["$pathname", "$browser"]);
  await settle();
  expect(store.promoted).toEqual(["$pathname", "$browser"]);
  store.count = 1_000_000;
  ask("plan", materializationRules.usesWanted);
  await settle();
  expect(store.promoted).toEqual(["$pathname", "$browser", "plan"]);
  clock.now += 2 * materializationRules.unusedMs;
  await settle();
  expect(store.promoted).toEqual(["$pathname", "$browser"]);
  promotion.pin(["$browser"]);
  await settle();
  expect(store.promoted).toEqual(["$browser"]);
});

test("a pinned property whose values are too long gets no column", async () => {
  const { store, promotion, settle } = start();
  store.tooLong.add("$pathname");
  promotion.pin(["$pathname"]);
  await settle();
  await settle();
  expect(store.promoted).toEqual([]);
});
