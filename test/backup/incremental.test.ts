/** Incremental backups: what has not changed is not sent again, each can be restored, and none loses what it needs. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { generateIdentity, identityToRecipient } from "age-encryption";
import type { ListedBackup } from "../../src/backup/list.ts";
import { bucket, s3Environment, TestS3 } from "../support/s3.ts";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
} from "../support/server.ts";

interface IncrementalBackup {
  file: string;
  bytes: number;
  sent_bytes: number;
  mended_pieces: number;
  events: number;
}

const folder = temporaryFolder();
let directory: Awaited<ReturnType<typeof initializedDirectory>>;
let events = 0;

/** So that stores are larger than one piece. */
async function addEvents(count: number) {
  await using server = await ServerProcess.start({ directory });
  const noise = () => Buffer.from(crypto.getRandomValues(new Uint8Array(3_000))).toString("base64");
  for (let done = 0; done < count; done += 500) {
    const batch = Array.from({ length: Math.min(500, count - done) }, () => ({
      event: "x",
      distinct_id: "kim",
      properties: { noise: noise() },
    }));
    await server.batch(batch);
  }
  events += count;
  await server.stop();
}

beforeAll(async () => {
  directory = await initializedDirectory();
  await addEvents(4_000);
}, 60_000);
afterAll(() => {
  rmSync(folder, { recursive: true });
  rmSync(directory.dataDir, { recursive: true });
});

const at = () => ["--data-dir", directory.dataDir, "--json"];
async function run<Result>(args: readonly string[], env: Record<string, string> = {}): Promise<Result> {
  const { stdout, stderr, code } = await flagkeep(["backup", ...args], env);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout) as Result;
}
const make = (place: string, more: string[] = [], env = {}) =>
  run<IncrementalBackup>(["create", place, "--backup-mode", "incremental", ...at(), ...more], env);
const getChunks = (file: string) =>
  (JSON.parse(readFileSync(file, "utf8")) as { pieces: { name: string }[] }).pieces.map(({ name }) => name);
const isSound = async (file: string) => (await flagkeep(["backup", "verify", file, ...at()])).code === 0;

test("in a folder: the second uploads little; both are restored; deleting the first leaves the second complete", async () => {
  const place = join(folder, "plain");
  const first = await make(place);
  expect(first.file).toEndWith(".index.json");
  expect(first.sent_bytes).toBe(first.bytes);
  expect(first.events).toBe(events);
  const before = events;
  await addEvents(20);
  const second = await make(place);
  expect(second.bytes).toBeGreaterThan(10_000_000);
  expect(second.sent_bytes).toBeLessThan(second.bytes / 2);
  const listed = await run<ListedBackup[]>(["list", place, ...at()]);
  expect(
    listed.map(({ file, verified, incremental, events }) => ({ file, verified, incremental, events })),
  ).toEqual([
    { file: second.file, verified: true, incremental: true, events },
    { file: first.file, verified: true, incremental: true, events: before },
  ]);
  for (const [created, count] of [
    [first, before],
    [second, events],
  ] as const) {
    expect(await run(["verify", created.file, ...at()])).toMatchObject({ ok: true, events: count });
    const target = join(folder, `restored-${count}`);
    expect(await run(["restore", created.file, "--data-dir", target, "--json"])).toMatchObject({
      events: count,
    });
  }
  expect(await run(["drill", second.file, ...at()])).toMatchObject({ ok: true, events });
  await run(["prune", place, "--keep-last", "1", ...at()]);
  expect(await isSound(second.file)).toBe(true);
  expect(readdirSync(join(place, "pieces")).sort()).toEqual(getChunks(second.file).sort());
}, 120_000);

test("in a bucket, encrypted for an age key: chunks are shared, and unreadable without the key", async () => {
  await using s3 = await TestS3.start();
  const keyFile = join(folder, "age.key");
  writeFileSync(keyFile, `${await generateIdentity()}\n`);
  const place = `s3://${bucket}/pieces`;
  const more = ["--backup-s3-endpoint", s3.endpoint, "--backup-key-file", keyFile];
  const first = await make(place, more, s3Environment);
  s3.requests = [];
  const second = await make(place, more, s3Environment);
  // VACUUM writes the same files for the same content; only the index is new.
  expect(second.sent_bytes).toBeLessThan(first.bytes / 10);
  expect(
    s3.requests.filter((request) => request.startsWith("PUT") && request.includes("/pieces/")).length,
  ).toBeLessThan(3);
  expect(await run(["verify", second.file, ...at(), ...more], s3Environment)).toMatchObject({ events });
  const without = await flagkeep(
    ["backup", "verify", second.file, ...at(), "--backup-s3-endpoint", s3.endpoint],
    s3Environment,
  );
  expect(without.stderr).toContain("is encrypted.");
  // Pruning needs no key.
  const pruned = await run<{ removed: object[] }>(
    ["prune", place, "--keep-last", "1", ...at(), "--backup-s3-endpoint", s3.endpoint],
    s3Environment,
  );
  expect(pruned.removed).toMatchObject([{ file: first.file }]);
  expect(await run(["verify", second.file, ...at(), ...more], s3Environment)).toMatchObject({ events });
  const target = join(folder, "from-bucket");
  expect(
    await run(["restore", second.file, "--data-dir", target, "--json", ...more], s3Environment),
  ).toMatchObject({ events });
}, 120_000);

test("a bucket that does not respond for a backup while old ones are deleted: none of its chunks is deleted", async () => {
  await using s3 = await TestS3.start();
  const place = `s3://${bucket}/busy`;
  const more = ["--backup-s3-endpoint", s3.endpoint];
  const first = await make(place, more, s3Environment);
  const second = await make(place, more, s3Environment);
  const isAsked = ({ method, url }: Request) =>
    method === "HEAD" && url.endsWith(encodeURI(second.file.slice(second.file.lastIndexOf("/") + 1)));
  // From the moment on at which the first one has gone, and the pieces are looked for that no one needs.
  s3.fails = (_, request) =>
    isAsked(request) && s3.requests.some((one) => one.startsWith("DELETE")) ? "error" : undefined;
  const { code, stdout, stderr } = await flagkeep(
    ["backup", "prune", place, "--keep-last", "1", ...at(), ...more],
    s3Environment,
  );
  s3.fails = () => undefined;
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(`Reading ${second.file} failed`);
  expect(s3.requests.filter((one) => one.startsWith("DELETE"))).toEqual([
    `DELETE ${new URL(first.file.replace("s3:/", ""), s3.endpoint).pathname}`,
  ]);
  expect(await run(["verify", second.file, ...at(), ...more], s3Environment)).toMatchObject({ events });
}, 120_000);

test("with a passphrase it is rejected in one sentence", async () => {
  const { stderr, code } = await flagkeep(
    ["backup", "create", join(folder, "p"), "--backup-mode", "incremental", ...at()],
    { FLAGKEEP_BACKUP_PASSPHRASE: "x" },
  );
  expect(code).toBe(1);
  expect(stderr).toContain("for age keys, not with a passphrase");
});

describe("corrupt chunks", () => {
  test("a chunk is missing, truncated or changed: the backup is reported as corrupt, and the next one repairs it", async () => {
    const place = join(folder, "damaged");
    const { file } = await make(place);
    const [name] = getChunks(file);
    const path = join(place, "pieces", name!);
    const whole = readFileSync(path);
    const list = async () => (await run<ListedBackup[]>(["list", place, ...at()])).at(-1)!;
    unlinkSync(path);
    expect(await list()).toMatchObject({ verified: false, problem: expect.stringContaining("1 of its") });
    expect(await isSound(file)).toBe(false);
    writeFileSync(path, whole);
    truncateSync(path, whole.length - 1);
    expect(await list()).toMatchObject({ verified: false });
    // What is created now does not count on it.
    const next = await make(place);
    expect(await isSound(next.file)).toBe(true);
    expect(await isSound(file)).toBe(true);
    const changed = Buffer.from(whole);
    changed[whole.length >> 1]! ^= 255;
    writeFileSync(path, changed);
    const { stderr, code } = await flagkeep(["backup", "verify", file, ...at()]);
    expect(code).toBe(1);
    expect(stderr).toContain("The backup is corrupt in");
    const mending = await make(place);
    expect(mending.mended_pieces).toBe(1);
    expect(await isSound(mending.file)).toBe(true);
    expect(await isSound(file)).toBe(true);
    expect(await make(place)).toMatchObject({ mended_pieces: 0 });
  }, 60_000);

  test("encrypted, without a key on the server: a changed chunk is detected and uploaded again", async () => {
    const place = join(folder, "sealed");
    const keyFile = join(folder, "sealed.key");
    const identity = await generateIdentity();
    writeFileSync(keyFile, `${identity}\n`);
    const recipients = ["--backup-recipients", await identityToRecipient(identity)];
    const { file } = await make(place, recipients);
    const path = join(place, "pieces", getChunks(file)[0]!);
    const changed = readFileSync(path);
    changed[changed.length >> 1]! ^= 1;
    writeFileSync(path, changed);
    const next = await make(place, recipients);
    expect(next.mended_pieces).toBe(1);
    expect(next.sent_bytes).toBeLessThan(next.bytes / 2);
    for (const one of [file, next.file]) {
      expect(await run(["verify", one, ...at(), "--backup-key-file", keyFile])).toMatchObject({ ok: true });
    }
  }, 60_000);

  test("no chunk is deleted while an index is unreadable; files of an interrupted backup are deleted after a day", async () => {
    const place = join(folder, "unreadable");
    const first = await make(place);
    await addEvents(10);
    const second = await make(place);
    const text = readFileSync(first.file);
    writeFileSync(first.file, text.subarray(0, 100));
    const chunks = () => readdirSync(join(place, "pieces")).length;
    const all = chunks();
    const third = await make(place);
    await run(["prune", place, "--keep-last", "1", ...at()]);
    expect(chunks()).toBeGreaterThanOrEqual(all);
    writeFileSync(first.file, text);
    expect(await isSound(first.file)).toBe(true);
    expect(await isSound(third.file)).toBe(true);
    expect((await run<ListedBackup[]>(["list", place, ...at()])).map(({ file }) => file)).not.toContain(
      second.file,
    );
    const orphans = ["a", "b"].map((letter) => join(place, "pieces", `${letter.repeat(64)}.zst`));
    for (const orphan of orphans) writeFileSync(orphan, "x");
    const longAgo = Date.now() / 1_000 - 2 * 86_400;
    utimesSync(orphans[0]!, longAgo, longAgo);
    await run(["prune", place, "--keep-last", "1", ...at()]);
    expect(
      orphans.map((orphan) => readdirSync(join(place, "pieces")).includes(orphan.split("/").at(-1)!)),
    ).toEqual([false, true]);
    expect(await isSound(third.file)).toBe(true);
  }, 120_000);
});

test("killed at any time: every listed backup is complete, and so is the next one", async () => {
  const place = join(folder, "killed");
  let created = (await make(place)).file;
  for (let round = 0; round < 3; round++) {
    await addEvents(5);
    const child = Bun.spawn(
      [executable, "backup", "create", place, "--backup-mode", "incremental", ...at()],
      {
        stdout: "ignore",
        stderr: "ignore",
        env: {},
      },
    );
    await Bun.sleep(Math.random() * 700);
    child.kill("SIGKILL");
    await child.exited;
    const listed = await run<ListedBackup[]>(["list", place, ...at()]);
    expect(listed.map(({ verified }) => verified)).not.toContain(false);
    expect(listed.map(({ file }) => file)).toContain(created);
    const next = await make(place);
    expect(await isSound(next.file)).toBe(true);
    expect(await isSound(created)).toBe(true);
    await run(["prune", place, "--keep-last", "1", ...at()]);
    created = next.file;
    expect(await isSound(created)).toBe(true);
  }
}, 180_000);
