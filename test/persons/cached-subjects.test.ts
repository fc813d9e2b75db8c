import { describe, expect, test } from "bun:test";
import {
  CachedSubjects,
  noOverridesMsMax,
  readsAtOnce,
  readsMax,
  SubjectUnavailableError,
} from "../../src/persons/cached-subjects.ts";
import type {
  GroupKey,
  PersonReader,
  StoredId,
  SubjectQuery,
  SubjectSource,
} from "../../src/persons/person-reader.ts";
import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { personReaderConformance } from "./person-reader-conformance.ts";
import { newYearMicros, set, TestPersons } from "./support.ts";

/** Reads later, or never. */
class Remote implements SubjectSource {
  /** The IDs and group keys of each statement. */
  statements: string[][] = [];
  overrideChecks = 0;
  hasOverrides = true;
  isHanging = false;
  isBroken = false;
  /** Called when a read has its result, before it is returned. */
  onRead: (() => void | Promise<void>) | undefined;

  constructor(private readonly people: TestPersons) {}

  storedIds(ids: readonly { projectId: number; distinctId: string }[], nowMicros: number) {
    const keys = ids.map(({ distinctId }) => distinctId);
    return this.read(keys, (reader) =>
      ids.map(({ projectId, distinctId }): StoredId => {
        const query = { projectId, distinctIds: [distinctId], groups: [], nowMicros };
        const { person, staticCohortIds, overridden } = reader.subject({
          ...query,
          withCohorts: true,
          withOverrides: true,
        });
        return { person, staticCohortIds: staticCohortIds ?? new Set(), overridden: overridden[0] };
      }),
    );
  }

  storedGroups(keys: readonly (GroupKey & { projectId: number })[]) {
    return this.read(
      keys.map(({ key }) => key),
      (reader) =>
        keys.map(({ projectId, ...group }) => {
          const query = { projectId, distinctIds: [], withCohorts: false, withOverrides: false };
          return reader.subject({ ...query, groups: [group], nowMicros: newYearMicros }).groups[0];
        }),
    );
  }

  async hasHashKeyOverrides(): Promise<boolean> {
    this.overrideChecks += 1;
    if (this.isHanging) await new Promise(() => undefined);
    return this.hasOverrides;
  }

  private async read<Result>(
    keys: string[],
    get: (reader: SqlitePersonReader) => Result[],
  ): Promise<Result[]> {
    this.statements.push(keys);
    await new Promise(setImmediate);
    if (this.isHanging) await new Promise(() => undefined);
    if (this.isBroken) throw new Error("The connection is lost.");
    const results = get(new SqlitePersonReader(this.people.db));
    await this.onRead?.();
    return results;
  }
}

class Setup implements Disposable {
  readonly people = new TestPersons();
  readonly remote = new Remote(this.people);
  isUnavailable = false;
  now = 0;
  readonly cache: CachedSubjects;

  constructor(bytesMax = 1_000_000) {
    this.cache = new CachedSubjects(this.remote, {
      bytesMax,
      isUnavailable: () => this.isUnavailable,
      now: () => this.now,
    });
  }

  ask(...distinctIds: string[]) {
    return this.cache.subject({
      projectId: 1,
      distinctIds,
      withCohorts: false,
      withOverrides: true,
      groups: [],
      nowMicros: newYearMicros,
    });
  }

  async plan(id: string): Promise<unknown> {
    const { person } = await this.ask(id);
    return person && JSON.parse(person.propertiesText).plan;
  }

  [Symbol.dispose](): void {
    this.people[Symbol.dispose]();
  }
}

personReaderConformance("a cached reader", async (people) => {
  const cache = new CachedSubjects(new Remote(people), {
    bytesMax: 1_000_000,
    isUnavailable: () => false,
  });
  const reader: PersonReader = Object.assign(new SqlitePersonReader(people.db), {
    subject: (query: SubjectQuery) => cache.subject(query),
  });
  return { reader, close: async () => {} };
});

describe("the cache of subjects", () => {
  test("responds immediately from memory, for ids with and without a person", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    expect([await it.plan("ann"), await it.plan("bob")]).toEqual(["pro", undefined]);
    for (const id of ["ann", "bob"]) expect(it.ask(id)).not.toBeInstanceOf(Promise);
    expect(it.remote.statements).toHaveLength(2);
  });

  test("reads an id once for requests at the same time", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    expect(await Promise.all([it.plan("ann"), it.plan("ann"), it.plan("ann")])).toEqual([
      "pro",
      "pro",
      "pro",
    ]);
    expect(it.remote.statements).toHaveLength(1);
  });

  test("reads the ids and groups of one event-loop tick with one statement of each kind", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }), set("kim", { plan: "free" }));
    const withGroup = (distinctId: string, key: string) =>
      it.cache.subject({
        projectId: 1,
        distinctIds: [distinctId],
        withCohorts: false,
        withOverrides: true,
        groups: [{ typeIndex: 0, key }],
        nowMicros: newYearMicros,
      });
    const subjects = await Promise.all([
      withGroup("ann", "acme"),
      withGroup("bob", "bolt"),
      withGroup("ann", "bolt"),
      withGroup("kim", "acme"),
    ]);
    expect(it.remote.statements).toEqual([
      ["ann", "bob", "kim"],
      ["acme", "bolt"],
    ]);
    expect(subjects.map(({ person }) => person?.mainDistinctId)).toEqual(["ann", undefined, "ann", "kim"]);
    await Promise.all([it.plan("ann"), it.plan("new")]);
    expect(it.remote.statements.slice(2)).toEqual([["new"]]);
  });

  test("a statement reads 100 ids; more are several statements", async () => {
    using it = new Setup();
    it.people.apply(set("p0", { plan: "first" }), set("p100", { plan: "last" }));
    const plans = await Promise.all(Array.from({ length: readsAtOnce + 1 }, (_, n) => it.plan(`p${n}`)));
    expect(it.remote.statements.map(({ length }) => length)).toEqual([100, 1]);
    expect([plans[0], plans[1], plans[100]]).toEqual(["first", undefined, "last"]);
  });

  test("an error concerns all ids of its statement, and no other ones", async () => {
    using it = new Setup();
    it.remote.isBroken = true;
    const failing = ["ann", "bob"].map((id) => it.plan(id).catch(() => "failed"));
    expect(await Promise.all(failing)).toEqual(["failed", "failed"]);
    it.remote.isBroken = false;
    expect(await Promise.all(["ann", "bob"].map((id) => it.plan(id)))).toEqual([undefined, undefined]);
  });

  test("forgets what a change concerns, and everything after its time", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    await it.plan("ann");
    await it.plan("bob");
    it.people.apply(set("ann", { plan: "free" }), set("bob", { plan: "new" }));
    expect([await it.plan("ann"), await it.plan("bob")]).toEqual(["pro", undefined]);
    it.cache.evict([it.people.person("ann")!.uuid, "unknown"]);
    it.cache.evictId(1, "bob");
    expect([await it.plan("ann"), await it.plan("bob")]).toEqual(["free", "new"]);
    it.people.apply(set("ann", { plan: "later" }));
    it.now += 29_999;
    expect(await it.plan("ann")).toBe("free");
    it.now += 1;
    expect(await it.plan("ann")).toBe("later");
    it.people.apply(set("ann", { plan: "last" }));
    it.cache.evictId(1, "ann");
    expect(await it.plan("ann")).toBe("last");
  });

  test("does not cache what was read while something changed", async () => {
    for (const evict of [
      (it: Setup) => it.cache.evict([it.people.person("ann")!.uuid]),
      (it: Setup) => it.cache.evictId(1, "ann"),
    ]) {
      using it = new Setup();
      it.people.apply(set("ann", { plan: "pro" }));
      it.remote.onRead = () => {
        it.remote.onRead = undefined;
        it.people.apply(set("ann", { plan: "free" }));
        evict(it);
      };
      expect(await it.plan("ann")).toBe("pro");
      expect(await it.plan("ann")).toBe("free");
      expect(it.ask("ann")).not.toBeInstanceOf(Promise);
    }
  });

  test("reads a group again after two seconds, because its changes are not announced", async () => {
    using it = new Setup();
    const ask = () =>
      it.cache.subject({
        projectId: 1,
        distinctIds: [],
        withCohorts: false,
        withOverrides: false,
        groups: [{ typeIndex: 0, key: "acme" }],
        nowMicros: newYearMicros,
      });
    await ask();
    it.now += 1_999;
    expect(ask()).not.toBeInstanceOf(Promise);
    it.now += 1;
    expect(ask()).toBeInstanceOf(Promise);
  });

  test("stays within its bytes: the least recently used go first", async () => {
    using it = new Setup(3_000);
    for (let n = 0; n < 20; n++) it.people.apply(set(`p${n}`, { plan: "x".repeat(100) }));
    for (let n = 0; n < 20; n++) {
      await it.plan("p0");
      await it.plan(`p${n}`);
      expect(it.cache.use.bytes).toBeLessThanOrEqual(3_000);
    }
    expect(it.cache.use.entries).toBeGreaterThan(2);
    const { length } = it.remote.statements;
    await it.plan("p0");
    await it.plan("p19");
    expect(it.remote.statements).toHaveLength(length);
    await it.plan("p1");
    expect(it.remote.statements).toHaveLength(length + 1);
  });

  test("while the store is unavailable, cached ones are used at any age and others fail immediately", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    await it.plan("ann");
    expect(await it.cache.hasHashKeyOverrides()).toBe(true);
    it.isUnavailable = true;
    it.now += 3_600_000;
    expect(it.ask("ann")).not.toBeInstanceOf(Promise);
    expect(() => it.ask("bob")).toThrow(SubjectUnavailableError);
    expect(it.cache.hasHashKeyOverrides()).toBe(true);
    expect(it.remote.statements).toHaveLength(1);
  });

  test("no request waits longer than 250 ms, and an old entry is better than none", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    await it.plan("ann");
    it.now += 30_000;
    it.remote.isHanging = true;
    const startedAt = performance.now();
    expect(await Promise.all([it.plan("ann"), it.plan("bob").catch((error) => error)])).toEqual([
      "pro",
      expect.any(SubjectUnavailableError),
    ]);
    expect(performance.now() - startedAt).toBeGreaterThan(200);
  });

  test("counts what was cached and what was not", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    const ask = () =>
      it.cache.subject({
        projectId: 1,
        distinctIds: ["ann", "bob"],
        withCohorts: false,
        withOverrides: true,
        groups: [{ typeIndex: 0, key: "acme" }],
        nowMicros: newYearMicros,
      });
    await ask();
    expect(it.cache.use).toMatchObject({ entries: 3, bytesMax: 1_000_000, hits: 0, misses: 3 });
    it.now += 2_000;
    await ask();
    expect(it.cache.use).toMatchObject({ hits: 2, misses: 4 });
    it.isUnavailable = true;
    it.now += 30_000;
    await ask();
    expect(it.cache.use).toMatchObject({ hits: 5, misses: 4 });
    expect(() => it.ask("kim")).toThrow();
    expect(it.cache.use).toMatchObject({ hits: 5, misses: 5 });
  });

  test("a failed read is not cached", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    it.remote.isBroken = true;
    // Awaited here: `rejects` runs timers before promises if the process is slow.
    expect(await it.plan("ann").catch(String)).toContain("The connection is lost.");
    it.remote.isBroken = false;
    expect(await it.plan("ann")).toBe("pro");
  });

  test("a request after a change does not use a read that started before it", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    const gate = Promise.withResolvers<void>();
    const read = Promise.withResolvers<void>();
    it.remote.onRead = () => {
      it.remote.onRead = undefined;
      read.resolve();
      return gate.promise;
    };
    const before = it.plan("ann");
    await read.promise;
    it.people.apply(set("ann", { plan: "free" }));
    it.cache.evictId(1, "ann");
    expect(await it.plan("ann")).toBe("free");
    gate.resolve();
    expect(await before).toBe("pro");
    expect(await it.plan("ann")).toBe("free");
    expect(it.remote.statements).toHaveLength(2);
  });

  test("1,000 reads are in progress; others fail immediately, or use an old entry", async () => {
    using it = new Setup();
    it.people.apply(set("ann", { plan: "pro" }));
    await it.plan("ann");
    it.now += 30_000;
    it.remote.isHanging = true;
    const waiting = Array.from({ length: readsMax }, (_, n) => it.plan(`p${n}`).catch(() => "late"));
    expect(await it.plan("one more").catch(String)).toContain(`${readsMax} reads are in progress`);
    expect(await it.plan("ann")).toBe("pro");
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(["late"]));
    expect(it.remote.statements).toHaveLength(1 + readsMax / readsAtOnce);
  });

  test("a slow check for overrides returns the last known value", async () => {
    using it = new Setup();
    it.remote.isHanging = true;
    expect(await it.cache.hasHashKeyOverrides()).toBe(false);
    it.cache.overridesStored(1, "ann");
    expect(it.cache.hasHashKeyOverrides()).toBe(true);
  });

  test("checks once for overrides until half a second has passed or one is stored", async () => {
    using it = new Setup();
    it.remote.hasOverrides = false;
    const check = () => it.cache.hasHashKeyOverrides();
    expect(await Promise.all([check(), check()])).toEqual([false, false]);
    it.now += noOverridesMsMax - 1;
    expect(check()).toBe(false);
    expect(it.remote.overrideChecks).toBe(1);
    it.now += 1;
    const checking = check();
    it.cache.overridesStored(1, "ann");
    await checking;
    expect(check()).toBe(true);
    it.now += noOverridesMsMax;
    expect(check()).toBe(true);
    expect(it.remote.overrideChecks).toBe(2);
  });
});
