/** Encrypted backups: what the executable writes, `age` reads and the other way round; a wrong key is one sentence. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { zstdDecompressSync } from "node:zlib";
import { Decrypter, generateIdentity, identityToRecipient } from "age-encryption";
import type { ListedBackup } from "../../src/backup/list.ts";
import { paths } from "../../src/paths.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";
import { type CreatedBackup, create, getContent, json } from "./support.ts";

const folder = temporaryFolder();
let directory: Awaited<ReturnType<typeof initializedDirectory>>;
let identity: string;
let recipient: string;
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

beforeAll(async () => {
  directory = await initializedDirectory();
  await using server = await ServerProcess.start({ directory });
  await server.batch(Array.from({ length: 200 }, (_, n) => ({ event: `e${n}`, distinct_id: `d${n}` })));
  await server.eventsWhenStored(200);
  await server.stop();
  identity = await generateIdentity();
  recipient = await identityToRecipient(identity);
}, 60_000);
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(directory.dataDir, { recursive: true });
});

const kinds = [
  ["a passphrase in a file", () => ["--backup-key-file", file("pass", "correct horse\n")], {}],
  ["a passphrase in the environment", () => [], { FLAGKEEP_BACKUP_PASSPHRASE: "correct horse" }],
  ["an age key", () => ["--backup-key-file", file("age.key", `# created: now\n${identity}\n`)], {}],
] as const;

for (const [name, getKey, env] of kinds) {
  test(`with ${name}: created, listed, verified, restored, drilled`, async () => {
    const key = getKey();
    const run = async (...args: string[]) => {
      const { stdout, stderr, code } = await flagkeep(["backup", ...args, ...key], env);
      expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const at = ["--data-dir", directory.dataDir, "--json"];
    const created = (await run("create", join(folder, name), ...at)) as unknown as CreatedBackup & {
      encrypted: boolean;
    };
    expect(created).toMatchObject({ encrypted: true, events: 200 });
    expect(created.file).toEndWith(".tar.zst.age");
    const bytes = readFileSync(created.file);
    expect(bytes.subarray(0, 21).toString()).toBe("age-encryption.org/v1");
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(created.sha256);
    expect(
      await json<ListedBackup[]>("list", join(folder, name), "--data-dir", directory.dataDir),
    ).toMatchObject([{ file: created.file, verified: true, encrypted: true, events: null }]);
    expect(await run("verify", created.file, ...at)).toMatchObject({ ok: true, events: 200 });
    const target = join(folder, `${name}-restored`);
    expect(await run("restore", created.file, "--data-dir", target, "--json")).toMatchObject({ events: 200 });
    expect(existsSync(join(target, "flagkeep.sqlite"))).toBe(true);
    expect(await run("drill", created.file, ...at)).toMatchObject({ ok: true, events: 200 });
  }, 60_000);
}

describe("for a public key alone", () => {
  let created: CreatedBackup;
  beforeAll(async () => {
    created = await create(directory.dataDir, join(folder, "public"), "--backup-recipients", recipient);
  });

  test("the archive stays, and a broken event store is rebuilt from it without the key", async () => {
    const own = await initializedDirectory();
    await using server = await ServerProcess.start({ directory: own });
    await server.batch(Array.from({ length: 20 }, (_, n) => ({ event: `e${n}`, distinct_id: "d" })));
    await server.eventsWhenStored(20);
    await server.stop();
    const archived = () => readdirSync(join(paths(own.dataDir).archive, "realtime")).length;
    const before = archived();
    expect(before).toBeGreaterThan(0);
    await create(own.dataDir, join(folder, "own"), "--backup-recipients", recipient);
    expect(archived()).toBe(before);
    truncateSync(paths(own.dataDir).events, 4096);
    await using again = await ServerProcess.start({ directory: own });
    expect(await again.eventsWhenStored(20)).toHaveLength(20);
    await again.stop();
    // With the key here the backup serves instead.
    await create(own.dataDir, join(folder, "own"), "--backup-key-file", file("own.key", `${identity}\n`));
    expect(archived()).toBe(0);
    rmSync(own.dataDir, { recursive: true });
  }, 60_000);

  test("any tool for age reads it with the secret key", async () => {
    const decrypter = new Decrypter();
    decrypter.addIdentity(identity);
    const plain = await decrypter.decrypt(readFileSync(created.file));
    expect(Buffer.from(zstdDecompressSync(plain)).includes("manifest.json")).toBe(true);
  });

  const wrong: [name: string, args: () => string[], says: string][] = [
    ["no key", () => [], "is encrypted. Pass the file"],
    [
      "another key",
      () => ["--backup-key-file", file("other", `${"x".repeat(20)}\n`)],
      "cannot be decrypted with this key",
    ],
    [
      "a key file that is not there",
      () => ["--backup-key-file", join(folder, "none")],
      "cannot be read (ENOENT)",
    ],
    ["an empty key file", () => ["--backup-key-file", file("empty", "\n")], "contains no key"],
    [
      "contains an invalid age key",
      () => ["--backup-key-file", file("bad", "AGE-SECRET-KEY-1NONSENSE\n")],
      "contains an invalid age key",
    ],
    ["two passphrases", () => ["--backup-key-file", file("two", "a\nb\n")], "more than one passphrase"],
  ];
  for (const [name, args, says] of wrong) {
    test(`${name}: one sentence, and nothing changes`, async () => {
      const target = join(folder, "wrong");
      for (const command of [
        ["verify", created.file, "--data-dir", directory.dataDir],
        ["restore", created.file, "--data-dir", target],
      ]) {
        const { stdout, stderr, code } = await flagkeep(["backup", ...command, ...args()]);
        expect({ stdout, code }).toEqual({ stdout: "", code: 1 });
        expect(stderr).toContain(says);
        expect(stderr.trimEnd()).not.toContain("\n");
      }
      expect(existsSync(target)).toBe(false);
    });
  }

  test("an invalid recipient, or one in addition to a passphrase, is rejected before anything is copied", async () => {
    const before = getContent(directory.dataDir);
    const at = [
      "backup",
      "create",
      join(folder, "x"),
      "--data-dir",
      directory.dataDir,
      "--backup-recipients",
    ];
    expect((await flagkeep([...at, "age1nonsense"])).stderr).toContain(
      'Invalid age public key "age1nonsense".',
    );
    const both = await flagkeep([...at, recipient, "--backup-key-file", file("pass", "correct horse")]);
    expect(both.stderr).toContain("not both");
    expect(getContent(directory.dataDir)).toBe(before);
  });

  test("a changed, cut or prolonged file is corrupt, not a wrong key", async () => {
    const key = ["--backup-key-file", file("age.key", identity), "--data-dir", directory.dataDir];
    const bytes = readFileSync(created.file);
    const flipped = Buffer.from(bytes);
    flipped[flipped.length - 50]! ^= 1;
    for (const [name, content] of [
      ["flipped", flipped],
      ["cut", bytes.subarray(0, bytes.length - 1_000)],
      ["longer", Buffer.concat([bytes, Buffer.from("x")])],
    ] as const) {
      const path = join(folder, `${name}.age`);
      writeFileSync(path, content);
      const { stderr, code } = await flagkeep(["backup", "verify", path, ...key]);
      expect({ name, code }).toEqual({ name, code: 1 });
      expect(stderr).toContain("The backup is corrupt");
    }
    // A name says nothing.
    const renamed = join(folder, "renamed");
    copyFileSync(created.file, renamed);
    expect((await flagkeep(["backup", "verify", renamed, ...key])).code).toBe(0);
  });
});
