import { describe, expect, test } from "bun:test";
import { createCipheriv } from "node:crypto";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { createUser } from "../../../src/accounts/users.ts";
import { runScheduledChanges } from "../../../src/flags/api/pending-changes.ts";
import { payloadCipher } from "../../../src/flags/store/payload-cipher.ts";
import { flagsPath, type TestServer } from "../../support/management-server.ts";
import { cipherKey, placeholderText, secretServer, secretText } from "./secret-server.ts";

const stored = (server: TestServer): string =>
  (server.metadata.db.$client.query("SELECT filters FROM flag WHERE id = 1").get() as { filters: string })
    .filters;

describe("secret payloads", () => {
  test("are nowhere in the store and are decrypted on request", async () => {
    using server = secretServer();
    const filters = { payloads: { true: '{"password":"hunter2"}' } };
    const created = await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters } });
    expect(created.body.filters.payloads).toEqual({ true: '{"password":"hunter2"}' });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { filters: { payloads: { true: '"swordfish"' } } } });
    expect((await server.ask("GET", `${flagsPath}a/remote_config/`)).body).toBe('"swordfish"');
    server.metadata.db.$client.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const bytes = Buffer.from(server.metadata.db.$client.serialize()).toString("latin1");
    expect(bytes).not.toContain("hunter2");
    expect(bytes).not.toContain("swordfish");
    expect(JSON.stringify((await server.ask("GET", `${flagsPath}1/activity/`)).body)).not.toContain(
      "swordfish",
    );
    expect((await server.ask("GET", `${flagsPath}local_evaluation/`)).body.flags).toEqual([]);
  });

  test("stay when the placeholder is echoed, and keep their bytes when nothing changes", async () => {
    using server = secretServer();
    const payloads = { true: '"one"' };
    await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters: { payloads } } });
    const before = stored(server);
    const edit = (filters: object) => server.ask("PATCH", `${flagsPath}1/`, { body: { filters } });
    expect((await edit({ payloads: { true: placeholderText } })).body.filters.payloads).toEqual(payloads);
    expect((await edit({ payloads })).body.filters.payloads).toEqual(payloads);
    expect(stored(server)).toBe(before);
  });

  test("are not created from the placeholder if nothing is preserved", async () => {
    using server = secretServer();
    const filters = { payloads: { true: '"one"' } };
    const rejected = { status: 400, body: { code: "invalid_input", attr: "filters" } };
    const placeholder = { filters: { payloads: { true: placeholderText } } };
    const asked = { body: { key: "a", ...secretText, ...placeholder } };
    expect(await server.ask("POST", flagsPath, asked)).toMatchObject(rejected);
    await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters } });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { filters: { payloads: {} } } });
    expect(await server.ask("PATCH", `${flagsPath}1/`, { body: placeholder })).toMatchObject(rejected);
    const [removal] = (await server.ask("GET", `${flagsPath}1/activity/`)).body.results;
    const revert = { body: { activity_id: removal.id } };
    expect(await server.ask("POST", `${flagsPath}1/revert/`, revert)).toMatchObject(rejected);
    expect((await server.ask("GET", `${flagsPath}1/`)).body.filters.payloads).toEqual({});
  });

  test("are compared in clear when two people edit the flag", async () => {
    using server = secretServer();
    const body = { key: "a", ...secretText, filters: { payloads: { true: '"one"' } } };
    const original_flag = (await server.ask("POST", flagsPath, { body })).body;
    const edit = (change: object) => server.ask("PATCH", `${flagsPath}1/`, { body: change });
    const payload = (text: string) => ({ filters: { ...original_flag.filters, payloads: { true: text } } });
    await edit({ name: "renamed meanwhile" });
    const later = { version: 1, original_flag };
    expect(await edit({ ...later, ...payload('"two"') })).toMatchObject({
      status: 200,
      body: payload('"two"'),
    });
    expect((await edit({ ...later, ...payload('"three"') })).status).toBe(409);
  });

  test("become public only for a caller who knows them, and secret again with the switch", async () => {
    using server = secretServer();
    const payloads = { true: '"one"' };
    await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters: { payloads } } });
    const flip = (isSecret: boolean, filters?: object) =>
      server.ask("PATCH", `${flagsPath}1/`, { body: { has_encrypted_payloads: isSecret, filters } });
    for (const filters of [
      undefined,
      {},
      { payloads: null },
      { payloads: {} },
      { payloads: { other: '"one"' } },
      { payloads: { true: placeholderText } },
    ])
      expect(await flip(false, filters)).toMatchObject({
        status: 400,
        body: { attr: "has_encrypted_payloads", code: "invalid_input" },
      });
    expect(stored(server)).not.toContain("one");
    expect((await flip(false, { payloads })).body.filters.payloads).toEqual(payloads);
    expect(stored(server)).toContain("one");
    const on = await flip(true);
    expect(on.body.filters.payloads).toEqual(payloads);
    expect(on.body.warnings).toEqual([expect.stringContaining("Backups")]);
    expect((await server.ask("GET", `${flagsPath}1/`)).body).not.toHaveProperty("warnings");
    expect(stored(server)).not.toContain("one");
  });

  test("belong to flags of remote configuration only", async () => {
    using server = secretServer();
    const rejected = {
      status: 400,
      body: {
        code: "invalid_input",
        detail: "Encrypted payloads are only supported for remote configuration flags.",
        attr: "has_encrypted_payloads",
      },
    };
    const body = { key: "a", has_encrypted_payloads: true };
    expect(await server.ask("POST", flagsPath, { body })).toMatchObject(rejected);
    expect((await server.ask("POST", flagsPath, { body: { key: "a", ...secretText } })).status).toBe(201);
    const edit = (body: object) => server.ask("PATCH", `${flagsPath}1/`, { body });
    expect(await edit({ is_remote_configuration: false })).toMatchObject(rejected);
    expect((await edit({ is_remote_configuration: false, has_encrypted_payloads: false })).status).toBe(200);
  });

  test("a public payload that resembles an encrypted one is unchanged", async () => {
    using server = secretServer();
    const filters = { groups: [{}], payloads: { true: '"sealed:AAAA"' } };
    await server.ask("POST", flagsPath, { body: { key: "a", filters } });
    expect((await server.ask("GET", `${flagsPath}1/`)).body.filters.payloads).toEqual(filters.payloads);
  });

  test("one that cannot be decrypted is a specific error, and stays unchanged until it is set again", async () => {
    using server = secretServer();
    await server.ask("POST", flagsPath, {
      body: { key: "a", ...secretText, filters: { payloads: { true: "1" } } },
    });
    const before = stored(server);
    server.deps.payloads = payloadCipher(Buffer.alloc(32, 8));
    const shown = {
      filters: { payloads: { true: placeholderText } },
      warnings: [expect.stringContaining("(payload_unreadable)")],
    };
    expect((await server.ask("GET", `${flagsPath}1/`)).body).toMatchObject(shown);
    expect((await server.ask("GET", flagsPath)).body.results).toMatchObject([shown]);
    expect((await server.ask("PATCH", `${flagsPath}1/`, { body: { name: "m" } })).body).toMatchObject(shown);
    expect(await server.ask("GET", `${flagsPath}a/remote_config/`)).toMatchObject({
      status: 409,
      body: { code: "payload_unreadable" },
    });
    expect((await server.ask("PATCH", `${flagsPath}1/`, { body: { name: "n" } })).status).toBe(200);
    const echoed = { filters: { payloads: { true: placeholderText } } };
    expect((await server.ask("PATCH", `${flagsPath}1/`, { body: echoed })).status).toBe(200);
    expect(stored(server)).toBe(before);
    await server.ask("PATCH", `${flagsPath}1/`, { body: { filters: { payloads: { true: "2" } } } });
    expect((await server.ask("GET", `${flagsPath}a/remote_config/`)).body).toBe("2");
  });
});

/** A payload is bound to its project, flag and name. */
describe("an encrypted payload is unreadable", () => {
  async function withPayloads() {
    const server = secretServer();
    for (const key of ["a", "b"]) {
      const filters = { payloads: { true: `"of ${key}"` } };
      await server.ask("POST", flagsPath, { body: { key, ...secretText, filters } });
    }
    const sealed = () =>
      (JSON.parse(stored(server)) as { payloads: Record<string, string> }).payloads.true as string;
    const put = (payloads: object, id = 1) =>
      server.metadata.db.$client.run(
        "UPDATE flag SET filters = json_set(filters, '$.payloads', json(?)) WHERE id = ?",
        [JSON.stringify(payloads), id],
      );
    const read = async (key = "a") => {
      const { status, body } = await server.ask("GET", `${flagsPath}${key}/remote_config/`);
      return status === 200 ? body : [status, body.code];
    };
    return { server, sealed, put, read, [Symbol.dispose]: () => server[Symbol.dispose]() };
  }
  const unreadable = [409, "payload_unreadable"];
  /** What earlier versions stored. */
  function unbound(clear: string): string {
    const nonce = Buffer.alloc(12, 3);
    const cipher = createCipheriv("aes-256-gcm", cipherKey, nonce);
    const text = Buffer.concat([cipher.update(clear), cipher.final()]);
    return JSON.stringify(`sealed:${Buffer.concat([nonce, cipher.getAuthTag(), text]).toString("base64")}`);
  }

  test("in another flag, under another name, in another project", async () => {
    using it = await withPayloads();
    const sealed = it.sealed();
    expect([await it.read("a"), await it.read("b")]).toEqual(['"of a"', '"of b"']);
    it.put({ true: sealed }, 2);
    expect(await it.read("b")).toEqual(unreadable);
    it.put({ true: sealed, other: sealed });
    expect((await it.server.ask("GET", `${flagsPath}1/`)).body).toMatchObject({
      filters: { payloads: { true: '"of a"', other: placeholderText } },
      warnings: [expect.stringContaining('"other"')],
    });
    const cipher = payloadCipher(cipherKey);
    const flag = { id: 1, projectId: 1, hasEncryptedPayloads: true, filters: { payloads: { true: sealed } } };
    expect(cipher.open(flag as never).payloads).toEqual({ true: '"of a"' });
    expect(cipher.open({ ...flag, projectId: 2 } as never).payloads).toEqual({ true: placeholderText });
  });

  test("when it is corrupt, cut, empty, in plain text, or without its identity", async () => {
    using it = await withPayloads();
    const sealed = it.sealed();
    const bytes = Buffer.from(sealed.slice(10, -1), "base64");
    const withBytes = (part: Uint8Array) =>
      JSON.stringify(`sealed:2:${Buffer.from(part).toString("base64")}`);
    const flipped = (at: number) => withBytes(bytes.map((byte, index) => (index === at ? byte ^ 1 : byte)));
    expect(withBytes(bytes)).toBe(sealed);
    const corrupt: unknown[] = [
      flipped(0),
      flipped(12),
      flipped(27),
      flipped(28),
      flipped(bytes.length - 1),
      withBytes(bytes.subarray(0, -1)),
      withBytes(bytes.subarray(0, 16)),
      withBytes(Buffer.alloc(0)),
      '"sealed:2:"',
      '"sealed:"',
      '"sealed:2:!!"',
      '"sealed:9:AAAA"',
      '"sealed:2:AAAA',
      '"plain text"',
      "",
      "null",
      7,
      null,
      { a: 1 },
      sealed.replace("sealed:2:", "sealed:"),
    ];
    for (const payload of corrupt) {
      it.put({ true: payload });
      expect([payload, await it.read()]).toEqual([payload, unreadable]);
      for (const path of [
        `${flagsPath}1/`,
        flagsPath,
        `${flagsPath}1/status/`,
        `${flagsPath}local_evaluation/`,
      ])
        expect([payload, path, (await it.server.ask("GET", path)).status]).toEqual([payload, path, 200]);
      const edit = await it.server.ask("PATCH", `${flagsPath}1/`, { body: { active: true } });
      expect([payload, edit.status, edit.body.warnings?.length]).toEqual([payload, 200, 1]);
    }
  });

  test("but one of an earlier version is read, and bound when the flag is written", async () => {
    using it = await withPayloads();
    it.put({ true: unbound('"old"') });
    expect(await it.read()).toBe('"old"');
    const edit = { filters: { payloads: { true: placeholderText } } };
    expect((await it.server.ask("PATCH", `${flagsPath}1/`, { body: edit })).body.filters.payloads).toEqual({
      true: '"old"',
    });
    expect(it.sealed()).toStartWith('"sealed:2:');
    it.put({ true: it.sealed() }, 2);
    expect([await it.read(), await it.read("b")]).toEqual(['"old"', unreadable]);
  });
});

/** What was readable before encryption was turned on is removed from everything that the API shows. */
describe("the history of a payload that was encrypted later", () => {
  const secret = "hunter2-in-plain-text";
  const payloads = { true: JSON.stringify(secret) };

  async function serverWithHistory() {
    const server = secretServer();
    const body = { key: "a", is_remote_configuration: true, filters: { payloads } };
    await server.ask("POST", flagsPath, { body });
    const edit = (change: object) => server.ask("PATCH", `${flagsPath}1/`, { body: change });
    await edit({ filters: { payloads: { true: '"older-secret-text"' } } });
    await edit({ filters: { payloads }, note: `now it is ${secret}` });
    const scheduled = await server.ask("POST", "/api/projects/1/scheduled_changes/", {
      body: {
        record_id: 1,
        payload: { operation: "update", value: { filters: { payloads: { true: '"later-secret-text"' } } } },
        scheduled_at: "2099-01-01T00:00:00Z",
      },
    });
    expect(scheduled.status).toBe(201);
    const proposed = await server.ask("POST", "/api/projects/1/change_requests/", {
      body: {
        flag_id: 1,
        changes: { filters: { payloads: { true: '"asked-secret-text"' } } },
        note: `not ${secret}`,
      },
    });
    expect(proposed.status).toBe(201);
    return { server, edit };
  }

  const everything = async (server: TestServer) =>
    JSON.stringify(
      await Promise.all(
        [`${flagsPath}1/activity/`, `${flagsPath}activity/`, "/api/projects/1/activity_log/"]
          .concat(["/api/projects/1/scheduled_changes/", "/api/projects/1/change_requests/"])
          .map(async (path) => (await server.ask("GET", path)).body),
      ),
    );

  test("is redacted in activity, notes, scheduled changes and change requests, and overwritten on disk", async () => {
    const { server, edit } = await serverWithHistory();
    using _ = server;
    const before = await everything(server);
    const texts = [secret, "older-secret-text", "later-secret-text", "asked-secret-text"];
    for (const text of texts) expect(before).toContain(text);
    expect((await edit({ has_encrypted_payloads: true })).status).toBe(200);
    const after = await everything(server);
    for (const text of texts) expect(after).not.toContain(text);
    server.metadata.db.$client.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const bytes = Buffer.from(server.metadata.db.$client.serialize()).toString("latin1");
    for (const text of texts) expect(bytes).not.toContain(text);
  });

  test("is redacted where a note or description quotes a text of it; conditions and field names stay", async () => {
    using server = secretServer();
    const groups = [
      {
        properties: [{ key: "plan", type: "person", value: "active", operator: "exact" }],
        rollout_percentage: 100,
      },
    ];
    const payloads = { true: '{"token":"t0ken-value","pin":918273,"mode":"active"}' };
    const body = { key: "a", is_remote_configuration: true, filters: { groups, payloads } };
    await server.ask("POST", flagsPath, { body });
    const edit = (change: object) => server.ask("PATCH", `${flagsPath}1/`, { body: change });
    await edit({ name: "has t0ken-value", note: "t0ken-value and 918273" });
    await edit({ name: "no more", active: false });
    const requested = await server.ask("POST", "/api/projects/1/change_requests/", {
      body: { flag_id: 1, changes: { name: "t0ken-value", filters: { groups } }, note: "pin 918273" },
    });
    expect(requested.status).toBe(201);
    expect((await edit({ has_encrypted_payloads: true })).body.warnings).toHaveLength(1);
    const shown = await everything(server);
    expect(shown).not.toMatch(/t0ken-value|918273/);
    expect(shown).toContain('"field":"active"');
    const [request] = (await server.ask("GET", "/api/projects/1/change_requests/")).body.results;
    expect(request.changes.filters.groups).toEqual(groups);
  });

  test("an approval that turns encryption on shows no payload, and warns like the PATCH", async () => {
    const { server } = await serverWithHistory();
    using _ = server;
    const asked = await server.ask("POST", "/api/projects/1/change_requests/", {
      body: { flag_id: 1, changes: { has_encrypted_payloads: true } },
    });
    expect(asked.status).toBe(201);
    const email = "bob@example.com";
    createUser(server.metadata, { email, organizationId: server.first.organization.id, level: "admin" });
    const input = { userEmail: email, label: "x", scopes: ["*"] };
    const { value: key } = createKey(server.metadata, input, { now: server.now });
    const approval = `/api/projects/1/change_requests/${asked.body.id}/approve/`;
    const approved = await server.ask("POST", approval, { key });
    expect(approved).toMatchObject({
      status: 200,
      body: { state: "applied", warnings: [expect.any(String)] },
    });
    expect(JSON.stringify(approved.body)).not.toContain(secret);
  });

  test("null turns encryption off like false: only with the payload", async () => {
    const { server, edit } = await serverWithHistory();
    using _ = server;
    await edit({ has_encrypted_payloads: true });
    const off = { has_encrypted_payloads: null };
    expect(await edit(off)).toMatchObject({ status: 400, body: { attr: "has_encrypted_payloads" } });
    expect(await edit({ is_remote_configuration: null })).toMatchObject({ status: 400 });
    const requested = { body: { flag_id: 1, changes: off } };
    expect((await server.ask("POST", "/api/projects/1/change_requests/", requested)).status).toBe(400);
    const shown = await edit({ ...off, filters: { payloads: { true: '"public"' } } });
    expect(shown.body.filters.payloads).toEqual({ true: '"public"' });
    expect(stored(server)).toContain("public");
  });

  test("is not shown by the entries of the change itself, in both directions", async () => {
    const { server, edit } = await serverWithHistory();
    using _ = server;
    await edit({ has_encrypted_payloads: true, filters: { payloads: { true: '"brand-new-secret"' } } });
    expect(await everything(server)).not.toMatch(/brand-new-secret|hunter2/);
    await edit({ has_encrypted_payloads: false, filters: { payloads: { true: '"public-from-now"' } } });
    const [entry] = (await server.ask("GET", `${flagsPath}1/activity/`)).body.results;
    expect(JSON.stringify(entry)).not.toMatch(/public-from-now|sealed:/);
  });

  test("cannot be reverted across; a pending change that lost its payload is not applied", async () => {
    const { server, edit } = await serverWithHistory();
    using _ = server;
    const [, entry] = (await server.ask("GET", `${flagsPath}1/activity/`)).body.results;
    await edit({ has_encrypted_payloads: true });
    const revert = await server.ask("POST", `${flagsPath}1/revert/`, { body: { activity_id: entry.id } });
    expect(revert).toMatchObject({ status: 400, body: { attr: "activity_id" } });
    expect(runScheduledChanges(server.deps, new Date("2100-01-01"))).toBe(1);
    const [change] = (await server.ask("GET", "/api/projects/1/scheduled_changes/")).body.results;
    expect(change.failure_reason).toContain("was removed when");
    expect((await server.ask("GET", `${flagsPath}a/remote_config/`)).body).toBe(payloads.true);
  });

  test("pending changes of an encrypted payload hold nothing secret", async () => {
    const { server, edit } = await serverWithHistory();
    using _ = server;
    await edit({ has_encrypted_payloads: true });
    const propose = (changes: object) =>
      server.ask("POST", "/api/projects/1/change_requests/", { body: { flag_id: 1, changes } });
    expect(await propose({ filters: { payloads: { true: '"x-secret"' } } })).toMatchObject({ status: 400 });
    expect(await propose({ has_encrypted_payloads: false })).toMatchObject({
      status: 400,
      body: { attr: "has_encrypted_payloads" },
    });
    expect(await propose({ active: false })).toMatchObject({ status: 201 });
    expect(await everything(server)).not.toMatch(/sealed:|x-secret|hunter2/);
  });
});
