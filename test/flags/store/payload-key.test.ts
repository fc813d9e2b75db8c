/** The key file of encrypted payloads. */

import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openMetadata } from "../../../src/accounts/metadata.ts";
import { openPayloadKey, PayloadKeyError } from "../../../src/flags/store/payload-key.ts";
import { flagsPath } from "../../support/management-server.ts";
import { flagkeep, initializedDirectory } from "../../support/server.ts";
import { cipherKey, secretServer, secretText } from "./secret-server.ts";

describe("the key file", () => {
  function directory() {
    const folder = mkdtempSync(join(tmpdir(), "flagkeep-key-"));
    const metadata = openMetadata(join(folder, "flagkeep.sqlite"));
    const path = join(folder, "payload.key");
    return {
      path,
      metadata,
      [Symbol.dispose]: () => {
        metadata.close();
        rmSync(folder, { recursive: true });
      },
    };
  }

  test("is created once, for its owner only, and must have 32 bytes", () => {
    using own = directory();
    const { path, metadata } = own;
    const key = openPayloadKey(path, metadata);
    expect(key).toHaveLength(32);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(openPayloadKey(path, metadata)).toEqual(key);
    expect(readFileSync(path).equals(key)).toBe(true);
    writeFileSync(path, "short");
    expect(() => openPayloadKey(path, metadata)).toThrow(PayloadKeyError);
  });

  test("is not created again when it is missing, and not replaced by another one", () => {
    using own = directory();
    const { path, metadata } = own;
    const key = openPayloadKey(path, metadata);
    rmSync(path);
    expect(() => openPayloadKey(path, metadata)).toThrow(`${path} is missing`);
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, Buffer.alloc(32, 1));
    expect(() => openPayloadKey(path, metadata)).toThrow(`${path} contains another key`);
    writeFileSync(path, key);
    expect(openPayloadKey(path, metadata)).toEqual(key);
  });

  test("of an older data directory is checked by its encrypted payloads", async () => {
    using server = secretServer();
    const filters = { payloads: { true: '"one"' } };
    await server.ask("POST", flagsPath, { body: { key: "a", ...secretText, filters } });
    const folder = mkdtempSync(join(tmpdir(), "flagkeep-key-"));
    const path = join(folder, "payload.key");
    expect(() => openPayloadKey(path, server.metadata)).toThrow(PayloadKeyError);
    writeFileSync(path, Buffer.alloc(32, 8));
    expect(() => openPayloadKey(path, server.metadata)).toThrow(PayloadKeyError);
    writeFileSync(path, cipherKey);
    expect(openPayloadKey(path, server.metadata)).toEqual(cipherKey);
    rmSync(folder, { recursive: true });
  });
});

test("a server does not start, and commands do not work, without the key", async () => {
  const { dataDir } = await initializedDirectory();
  const path = join(dataDir, "payload.key");
  const key = readFileSync(path);
  for (const corruption of [
    () => {},
    () => writeFileSync(path, Buffer.alloc(32)),
    () => writeFileSync(path, ""),
    () => mkdirSync(path),
    () => symlinkSync(join(dataDir, "nowhere"), path),
  ]) {
    rmSync(path, { recursive: true, force: true });
    corruption();
    for (const args of [
      ["serve", "--port", "0"],
      ["flags", "list"],
      ["users", "list"],
    ]) {
      const { code, stderr } = await flagkeep([...args, "--data-dir", dataDir]);
      expect({ args, code }).toEqual({ args, code: 1 });
      expect(stderr).toContain(path);
      expect(stderr).toContain("flagkeep backup restore");
    }
  }
  rmSync(path);
  writeFileSync(path, key);
  expect((await flagkeep(["flags", "list", "--data-dir", dataDir])).code).toBe(0);
});
