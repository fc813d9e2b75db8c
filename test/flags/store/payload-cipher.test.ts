import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PayloadKeyWrong, payloadCipher, readPayloadKey } from "../../../src/flags/store/payload-cipher.ts";
import { flagsPath, TestServer } from "../../support/management-server.ts";

const cipherKey = Buffer.alloc(32, 7);
const placeholderText = '"********* (encrypted)"';
const secretText = { is_remote_configuration: true, has_encrypted_payloads: true };

function secretServer(key = cipherKey) {
  return new TestServer({ deps: { payloads: payloadCipher(key) } });
}

const stored = (server: TestServer): string =>
  (server.metadata.db.$client.query("SELECT filters FROM flag WHERE id = 1").get() as { filters: string })
    .filters;

describe("secret payloads", () => {
  test("are nowhere in the store and come back in clear", async () => {
    using server = secretServer();
    const filters = { payloads: { true: '{"password":"hunter2"}' } };
    const made = await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters } });
    expect(made.body.filters.payloads).toEqual({ true: '{"password":"hunter2"}' });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { filters: { payloads: { true: '"second"' } } } });
    expect((await server.ask("GET", `${flagsPath}a/remote_config/`)).body).toBe('"second"');
    server.metadata.db.$client.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const bytes = Buffer.from(server.metadata.db.$client.serialize()).toString("latin1");
    expect(bytes).not.toContain("hunter2");
    expect(bytes).not.toContain("second");
    expect(JSON.stringify((await server.ask("GET", `${flagsPath}1/activity/`)).body)).not.toContain("second");
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

  test("are not made of the placeholder, where there is nothing to keep", async () => {
    using server = secretServer();
    const filters = { payloads: { true: '"one"' } };
    const refused = { status: 400, body: { code: "invalid_input", attr: "filters" } };
    const placeholder = { filters: { payloads: { true: placeholderText } } };
    const asked = { body: { key: "a", ...secretText, ...placeholder } };
    expect(await server.ask("POST", flagsPath, asked)).toMatchObject(refused);
    await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters } });
    await server.ask("PATCH", `${flagsPath}1/`, { body: { filters: { payloads: {} } } });
    expect(await server.ask("PATCH", `${flagsPath}1/`, { body: placeholder })).toMatchObject(refused);
    const [removal] = (await server.ask("GET", `${flagsPath}1/activity/`)).body.results;
    const revert = { body: { activity_id: removal.id } };
    expect(await server.ask("POST", `${flagsPath}1/revert/`, revert)).toMatchObject(refused);
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

  test("become public and secret again with the switch", async () => {
    using server = secretServer();
    const payloads = { true: '"one"' };
    await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters: { payloads } } });
    const flip = (isSecret: boolean) =>
      server.ask("PATCH", `${flagsPath}1/`, { body: { has_encrypted_payloads: isSecret } });
    expect((await flip(false)).body.filters.payloads).toEqual(payloads);
    expect(stored(server)).toContain("one");
    expect((await flip(true)).body.filters.payloads).toEqual(payloads);
    expect(stored(server)).not.toContain("one");
  });

  test("belong to flags of remote configuration only", async () => {
    using server = secretServer();
    const refused = {
      status: 400,
      body: {
        code: "invalid_input",
        detail: "Encrypted payloads are only supported for remote configuration flags.",
        attr: "has_encrypted_payloads",
      },
    };
    const body = { key: "a", has_encrypted_payloads: true };
    expect(await server.ask("POST", flagsPath, { body })).toMatchObject(refused);
    expect((await server.ask("POST", flagsPath, { body: { key: "a", ...secretText } })).status).toBe(201);
    const edit = (body: object) => server.ask("PATCH", `${flagsPath}1/`, { body });
    expect(await edit({ is_remote_configuration: false })).toMatchObject(refused);
    expect((await edit({ is_remote_configuration: false, has_encrypted_payloads: false })).status).toBe(200);
  });

  test("a public payload that looks sealed is left alone", async () => {
    using server = secretServer();
    const filters = { groups: [{}], payloads: { true: '"sealed:AAAA"' } };
    await server.ask("POST", flagsPath, { body: { key: "a", filters } });
    expect((await server.ask("GET", `${flagsPath}1/`)).body.filters.payloads).toEqual(filters.payloads);
  });

  test("another key opens nothing", async () => {
    using server = secretServer();
    await server.ask("POST", flagsPath, {
      body: { key: "a", ...secretText, filters: { payloads: { true: "1" } } },
    });
    server.deps.payloads = payloadCipher(Buffer.alloc(32, 8));
    expect((await server.ask("GET", `${flagsPath}1/`)).status).toBe(500);
    expect(server.logged[0]?.error).toMatchObject({ name: "PayloadKeyWrong" });
  });
});

describe("the key file", () => {
  test("is made once, for its owner only, and must have 32 bytes", () => {
    const directory = mkdtempSync(join(tmpdir(), "flagkeep-key-"));
    const path = join(directory, "payload.key");
    const key = readPayloadKey(path);
    expect(key).toHaveLength(32);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readPayloadKey(path)).toEqual(key);
    expect(readFileSync(path).equals(key)).toBe(true);
    writeFileSync(path, "short");
    expect(() => readPayloadKey(path)).toThrow(PayloadKeyWrong);
    rmSync(directory, { recursive: true });
  });
});
