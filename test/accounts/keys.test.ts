import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AlreadyInitializedError, initialize, isInitialized } from "../../src/accounts/initialize.ts";
import {
  base62,
  hashOfKey,
  maskOfKey,
  newPersonalKey,
  newProjectKey,
} from "../../src/accounts/key-formats.ts";
import { authenticate } from "../../src/accounts/key-index.ts";
import { allows, checkScopes } from "../../src/accounts/limits.ts";
import { openMetadata } from "../../src/accounts/metadata.ts";
import { createKey, listKeys, revokeKey, rollKey } from "../../src/accounts/personal-keys.ts";
import {
  archiveProject,
  createProject,
  revokePreviousKey,
  rotateProjectKey,
  updateProject,
} from "../../src/accounts/projects.ts";
import { setUserActive } from "../../src/accounts/users.ts";
import { FlagSets } from "../../src/flags/store/flag-sets.ts";
import { createFlag } from "../../src/flags/store/flag-writes.ts";
import { InvalidFieldError, NotFoundError } from "../../src/lib/errors.ts";
import { plainPayloads } from "../support/payloads.ts";

const ann = { organization: "Acme", project: "Shop", email: "ann@example.com" };

/** A store that was not initialized, and its path for a second process. */
function emptyStore() {
  const directory = mkdtempSync(join(tmpdir(), "flagkeep-metadata-"));
  const path = join(directory, "metadata.sqlite");
  const metadata = openMetadata(path);
  return {
    metadata,
    path,
    [Symbol.dispose]() {
      metadata.close();
      rmSync(directory, { recursive: true });
    },
  };
}

describe("key formats", () => {
  test("base 62 keeps every bit", () => {
    expect(base62(new Uint8Array([0]))).toBe("0");
    expect(base62(new Uint8Array([61]))).toBe("z");
    expect(base62(new Uint8Array([62]))).toBe("10");
    expect(base62(new Uint8Array([1, 0]))).toBe("48");
  });
  test("prefix, length and mask", () => {
    expect(newProjectKey()).toMatch(/^phc_[0-9A-Za-z]{38,43}$/);
    expect(newPersonalKey()).toMatch(/^phx_[0-9A-Za-z]{42,48}$/);
    expect(newPersonalKey()).not.toBe(newPersonalKey());
    expect(maskOfKey("phx_0123456789abcd")).toBe("phx_...abcd");
  });
  test("the hash is the SHA-256 of the whole key", () => {
    const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    expect(hashOfKey("abc")).toBe(`sha256$${digest}`);
  });
});

describe("scopes", () => {
  for (const [held, wanted, expected] of [
    [["*"], "feature_flag:write", true],
    [["feature_flag:write"], "feature_flag:read", true],
    [["feature_flag:read"], "feature_flag:write", false],
    [["cohort:write"], "feature_flag:read", false],
    [[], "feature_flag:read", false],
  ] as const) {
    test(`${held.join() || "none"} and ${wanted}`, () => expect(allows(held, wanted)).toBe(expected));
  }
  test("an empty list is rejected", () =>
    expect(() => checkScopes([])).toThrow("A key needs at least one scope."));
  for (const wrong of ["flags:read", "feature_flag:delete", "feature_flag", "feature_flag:read:x", ""]) {
    test(`rejects "${wrong}"`, () => expect(() => checkScopes([wrong])).toThrow(`Invalid scope: ${wrong}`));
  }
});

describe("initialize", () => {
  test("makes the first of everything, once", () => {
    using store = emptyStore();
    expect(isInitialized(store.metadata.db)).toBe(false);
    const first = initialize(store.metadata, ann);
    expect(first.project).toMatchObject({ id: 1, name: "Shop" });
    expect(isInitialized(store.metadata.db)).toBe(true);
    expect(authenticate(store.metadata, first.personal_api_key)?.user.email).toBe("ann@example.com");
    expect(() => initialize(store.metadata, ann)).toThrow(AlreadyInitializedError);
  });
  test("adopts a project key", () => {
    using store = emptyStore();
    const adopted = initialize(store.metadata, { ...ann, projectApiKey: "phc_kept" });
    expect(adopted.project.api_key).toBe("phc_kept");
    expect(store.metadata.projects.findByToken("phc_kept")?.id).toBe(1);
  });
  for (const wrong of ["kept", "phx_kept", "phc_", "phc_ä", `phc_${"a".repeat(61)}`, "phc_a b"]) {
    test(`rejects the project key ${wrong} and changes nothing`, () => {
      using store = emptyStore();
      expect(() => initialize(store.metadata, { ...ann, projectApiKey: wrong })).toThrow(InvalidFieldError);
      expect(isInitialized(store.metadata.db)).toBe(false);
    });
  }
});

describe("personal keys", () => {
  test("the clear value is nowhere in the store", () => {
    using store = emptyStore();
    const first = initialize(store.metadata, ann);
    store.metadata.db.$client.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const dump = store.metadata.db.$client.serialize();
    expect(Buffer.from(dump).includes(first.personal_api_key)).toBe(false);
    expect(Buffer.from(dump).includes(first.project.api_key)).toBe(true);
  });
  test("a revoked, expired, replaced or strange key does nothing", () => {
    using store = emptyStore();
    initialize(store.metadata, ann);
    const now = new Date("2026-01-01T00:00:00Z");
    const make = (expiresAt?: Date) =>
      createKey(store.metadata, { userEmail: ann.email, label: "ci", scopes: ["*"], expiresAt }, { now });
    const revoked = make();
    const expiring = make(new Date("2026-01-02T00:00:00Z"));
    const rolled = make();
    for (const { value } of [revoked, expiring, rolled]) {
      expect(authenticate(store.metadata, value, now)).toBeDefined();
    }
    revokeKey(store.metadata, revoked.key.id);
    const next = rollKey(store.metadata, rolled.key.id);
    expect(authenticate(store.metadata, revoked.value, now)).toBeUndefined();
    expect(authenticate(store.metadata, expiring.value, new Date("2026-01-02T00:00:00Z"))).toBeUndefined();
    expect(authenticate(store.metadata, rolled.value, now)).toBeUndefined();
    expect(authenticate(store.metadata, next.value, now)).toBeDefined();
    expect(authenticate(store.metadata, "phx_strange", now)).toBeUndefined();
    expect(() => revokeKey(store.metadata, revoked.key.id)).toThrow(NotFoundError);
    expect(listKeys(store.metadata.db).map((key) => key.id)).not.toContain(revoked.key.id);
  });
  test("a deactivated user's keys do nothing", () => {
    using store = emptyStore();
    const { personal_api_key } = initialize(store.metadata, ann);
    setUserActive(store.metadata, ann.email, false);
    expect(authenticate(store.metadata, personal_api_key)).toBeUndefined();
    setUserActive(store.metadata, ann.email, true);
    expect(authenticate(store.metadata, personal_api_key)).toBeDefined();
  });
  test("last use is remembered once an hour", () => {
    using store = emptyStore();
    const { personal_api_key } = initialize(store.metadata, ann);
    const lastUsed = () => listKeys(store.metadata.db)[0]?.lastUsedAt?.toISOString();
    authenticate(store.metadata, personal_api_key, new Date("2026-01-01T10:00:00Z"));
    authenticate(store.metadata, personal_api_key, new Date("2026-01-01T10:59:59Z"));
    expect(lastUsed()).toBe("2026-01-01T10:00:00.000Z");
    authenticate(store.metadata, personal_api_key, new Date("2026-01-01T11:00:00Z"));
    expect(lastUsed()).toBe("2026-01-01T11:00:00.000Z");
  });
  for (const [name, change, field] of [
    ["unknown user", { userEmail: "bob@example.com" }, "user"],
    ["unknown scope", { scopes: ["flag:read"] }, "scopes"],
    ["unknown project", { projectIds: [9] }, "scoped_teams"],
    ["unknown organization", { organizationIds: ["x"] }, "scoped_organizations"],
    ["empty label", { label: " " }, "label"],
    ["long label", { label: "x".repeat(41) }, "label"],
    ["expiry in the past", { expiresAt: new Date(0) }, "expires_at"],
  ] as const) {
    test(`refuses: ${name}`, () => {
      using store = emptyStore();
      initialize(store.metadata, ann);
      const input = { userEmail: ann.email, label: "ci", scopes: ["*"], ...change };
      try {
        createKey(store.metadata, input as never);
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidFieldError);
        expect((error as InvalidFieldError).field).toBe(field);
      }
      expect(listKeys(store.metadata.db)).toHaveLength(1);
    });
  }
});

describe("a public key that was replaced", () => {
  const day = 86_400_000;
  /** A server whose project key was replaced `agoMs` ago, with a grace of a day. */
  function rotated(agoMs: number) {
    const store = emptyStore();
    const first = initialize(store.metadata, ann);
    const now = new Date(Date.now() - agoMs);
    const { apiToken } = rotateProjectKey(store.metadata, 1, null, { graceSeconds: 86_400, now });
    const found = (token: string) => store.metadata.projects.findByToken(token)?.id;
    return {
      ...store,
      [Symbol.dispose]: () => store[Symbol.dispose](),
      old: first.project.api_key,
      apiToken,
      found,
    };
  }

  test("is valid next to the new one during the grace period, and uses of each are counted", () => {
    using store = rotated(0);
    const { metadata, found } = store;
    for (let n = 0; n < 3; n++) expect(found(store.old)).toBe(1);
    for (let n = 0; n < 5; n++) expect(found(store.apiToken)).toBe(1);
    expect(found("phc_strange")).toBeUndefined();
    const use = { projectId: 1, requests: 3, presentRequests: 5, lastUsedAt: expect.any(Date) };
    expect(metadata.projects.formerKeyUses()).toMatchObject([use]);
    expect(found(store.old)).toBe(1);
    expect(metadata.projects.formerKeyUses()).toMatchObject([{ ...use, requests: 4 }]);
    expect(metadata.projects.formerKeyUses(new Date(Date.now() + day + 1))).toEqual([]);
  });
  test("is rejected once its time is over", () => {
    using store = rotated(day);
    expect([store.found(store.old), store.found(store.apiToken)]).toEqual([undefined, 1]);
    expect(store.metadata.projects.formerKeyUses()).toEqual([]);
  });
  test("can be ended before, and belongs to no other project meanwhile", () => {
    using store = rotated(0);
    const { organizationId } = store.metadata.projects.find(1)!;
    const second = { organizationId, name: "Second", projectApiKey: store.old };
    expect(() => createProject(store.metadata, second, null)).toThrow(
      "Another project already uses this key",
    );
    revokePreviousKey(store.metadata, 1, "public", null);
    expect([store.found(store.old), store.found(store.apiToken)]).toEqual([undefined, 1]);
    expect(createProject(store.metadata, second, null).id).toBe(2);
    expect(store.found(store.old)).toBe(2);
  });
  test("is not replaced by another rotation with a grace period; one without a grace period ends both", () => {
    using store = rotated(0);
    expect(() => rotateProjectKey(store.metadata, 1, null, { graceSeconds: 60 })).toThrow("is valid until");
    expect(store.found(store.old)).toBe(1);
    const last = rotateProjectKey(store.metadata, 1, null);
    expect([store.old, store.apiToken, last.apiToken].map(store.found)).toEqual([undefined, undefined, 1]);
  });
  test("uses of before are not counted for the next one", () => {
    using store = rotated(0);
    store.found(store.old);
    const next = rotateProjectKey(store.metadata, 1, null, { graceSeconds: 0 });
    rotateProjectKey(store.metadata, 1, null, { graceSeconds: 60 });
    expect(store.found(next.apiToken)).toBe(1);
    expect(store.metadata.projects.formerKeyUses()).toMatchObject([{ requests: 1, presentRequests: 0 }]);
  });
});

/** Waits for what another connection did; it may stay unnoticed for a few milliseconds. */
async function eventually(check: () => void): Promise<void> {
  for (const deadline = Date.now() + 10_000; ; await Bun.sleep(1)) {
    try {
      return check();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

describe("another process changes the file", () => {
  test("changes of keys and projects apply immediately", async () => {
    using store = emptyStore();
    const first = initialize(store.metadata, ann);
    const other = openMetadata(store.path);
    const found = (token: string) => store.metadata.projects.findByToken(token);
    const created = createKey(other, { userEmail: ann.email, label: "cli", scopes: ["*"] });
    expect(authenticate(store.metadata, created.value)).toBeDefined();
    revokeKey(other, created.key.id);
    await eventually(() => expect(authenticate(store.metadata, created.value)).toBeUndefined());

    expect(found(first.project.api_key)?.anonymizeIps).toBe(false);
    updateProject(other, 1, { anonymizeIps: true, timezone: "Europe/Berlin" }, null);
    const changed = { anonymizeIps: true, timezone: "Europe/Berlin" };
    await eventually(() => expect(found(first.project.api_key)).toMatchObject(changed));
    const rotated = rotateProjectKey(other, 1, null);
    await eventually(() => expect(found(first.project.api_key)).toBeUndefined());
    expect(found(rotated.apiToken)?.id).toBe(1);
    archiveProject(other, 1, true, null);
    await eventually(() => expect(found(rotated.apiToken)).toBeUndefined());
    other.close();
  });
  test("flags are evaluated again", async () => {
    using store = emptyStore();
    initialize(store.metadata, ann);
    const none: [] = [];
    const sets = new FlagSets(store.metadata, () => none);
    const other = openMetadata(store.path);
    const writing = { metadata: other, payloads: plainPayloads };
    const make = (key: string) =>
      createFlag(writing, {
        projectId: 1,
        by: 1,
        fields: { key },
        createsUsageDashboard: false,
        now: new Date(),
      });
    make("a");
    await eventually(() => expect([...sets.get(1).set.byKey.keys()]).toEqual(["a"]));
    const before = sets.get(1);
    expect(sets.get(1)).toBe(before);
    make("b");
    await eventually(() => expect([...sets.get(1).set.byKey.keys()]).toEqual(["a", "b"]));
    other.close();
  });
  test("a change of this process is seen without waiting", () => {
    using store = emptyStore();
    initialize(store.metadata, ann);
    const organizationId = store.metadata.projects.find(1)!.organizationId;
    const created = createProject(store.metadata, { organizationId, name: "Second" }, null);
    expect(store.metadata.projects.findByToken(created.apiToken)?.name).toBe("Second");
  });
});
