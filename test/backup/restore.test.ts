/** Restoring: what is rejected, what is kept, and backups of stopped servers and of older versions. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import type { Manifest } from "../../src/backup/manifest.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { swap } from "../../src/backup/swap.ts";
import { listArchive, readArchived } from "../../src/journal/archive.ts";
import { scanSegment, segmentFileName } from "../../src/journal/segment.ts";
import { paths } from "../../src/paths.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";
import { create, type Entry, getContent, getEntries, json, pack, withManifest } from "./support.ts";

const folder = temporaryFolder();
let source: ServerProcess;
let file: string;
beforeAll(async () => {
  source = await ServerProcess.start();
  await source.batch(Array.from({ length: 10 }, (_, n) => ({ event: "seen", distinct_id: `person-${n}` })));
  await source.eventsWhenStored(10);
  ({ file } = await create(source.dataDir, folder));
}, 30_000);
afterAll(async () => {
  await source[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

interface Restored {
  data_dir: string;
  previous: string | null;
  events: number;
}

/** Expects a failure that changes nothing in the folder. */
async function expectRejected(dataDir: string, args: string[], message: string) {
  const before = existsSync(dataDir) ? getContent(dataDir) : undefined;
  const { code, stdout, stderr } = await flagkeep(["backup", "restore", ...args, "--data-dir", dataDir]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(message);
  expect(stderr.trimEnd()).not.toContain("\n");
  expect(existsSync(dataDir) ? getContent(dataDir) : undefined).toBe(before);
}

describe("refused", () => {
  test("over a folder with files only with --force; its files are kept", async () => {
    const target = join(folder, "mine");
    for (const name of ["backups", "certificates"])
      mkdirSync(join(target, name), { recursive: true, mode: 0o700 });
    writeFileSync(join(target, "notes"), "kept");
    writeFileSync(join(target, "certificates", "account.pem"), "a key", { mode: 0o600 });
    writeFileSync(join(target, "backups", "old"), "an older backup", { mode: 0o600 });
    await expectRejected(target, [file], "is not empty. Use an empty --data-dir, or --force");
    const { previous, events } = await json<Restored>("restore", file, "--data-dir", target, "--force");
    expect(events).toBe(10);
    expect(previous).toStartWith(`${target}.before-restore-`);
    expect(readFileSync(join(previous!, "notes"), "utf8")).toBe("kept");
    // Who deletes the old folder must not delete the backups with it.
    expect(readFileSync(join(target, "backups", "old"), "utf8")).toBe("an older backup");
    // Authorities give few in a week.
    expect(readFileSync(join(target, "certificates", "account.pem"), "utf8")).toBe("a key");
    expect(statSync(target).mode & 0o777).toBe(0o700);
    expect(statSync(join(target, "flagkeep.sqlite")).mode & 0o777).toBe(0o600);
    const doctor = await flagkeep(["doctor", "--data-dir", target, "--port", "0", "--json"]);
    const { findings } = JSON.parse(doctor.stdout) as { findings: { level: string }[] };
    expect(findings.filter(({ level }) => level !== "ok")).toEqual([]);
    const state = await flagkeep(["status", "--data-dir", target, "--json"]);
    expect(JSON.parse(state.stdout).last_backup).toMatchObject({ file, error: null });
  });

  test("over a running server, always", async () => {
    for (const args of [[file], [file, "--force"]]) {
      const { code, stderr } = await flagkeep(["backup", "restore", ...args, "--data-dir", source.dataDir]);
      expect(code).toBe(1);
      expect(stderr).toContain("is in use by another Flagkeep");
    }
    expect(await source.events()).toHaveLength(10);
  });

  test("of a newer format or a newer schema, with both versions", async () => {
    const target = join(folder, "newer");
    const format = await withManifest(file, join(folder, "format.tar.zst"), ({ versions }) => ({
      format: 2,
      versions: { ...versions, flagkeep: "9.8.7" },
      future: true,
    }));
    await expectRejected(
      target,
      [format],
      "format has version 2, but this Flagkeep supports versions up to 1",
    );
    const schema = await withManifest(file, join(folder, "schema.tar.zst"), (manifest) => ({
      ...manifest,
      versions: { ...manifest.versions, flagkeep: "9.8.7" },
      schemas: { ...manifest.schemas, people: 99 },
    }));
    await expectRejected(target, [schema], "person store has version 99");
    const { stderr } = await flagkeep(["backup", "verify", schema, "--data-dir", target]);
    expect(stderr).toContain("Flagkeep 9.8.7");
  });

  test("with too little disk space", async () => {
    const target = join(folder, "full");
    const getSpace = async () => ({ freeBytes: 100 * 1024, totalBytes: 1024 ** 3 });
    const error = await restoreBackup(file, target, { spaceOf: getSpace }).catch(
      (failure: unknown) => failure,
    );
    expect(error).toMatchObject({
      code: "not_enough_space",
      message: expect.stringContaining("has 1 MiB free"),
    });
    expect(readdirSync(folder).filter((name) => name.startsWith("full"))).toEqual([]);
  });

  test("of no backup", async () => {
    await expectRejected(join(folder, "none"), [join(folder, "nothing.tar.zst")], "does not exist");
    await expectRejected(join(folder, "none"), [join(folder, "nothing.tar.zst")], `backup list ${folder}\``);
    mkdirSync(join(folder, "a place"));
    await expectRejected(
      join(folder, "none"),
      [join(folder, "a place")],
      `${join(folder, "a place")} is a folder, not a backup. See \`flagkeep backup list '${join(folder, "a place")}'\``,
    );
    writeFileSync(join(folder, "text"), "no backup at all");
    await expectRejected(join(folder, "none"), [join(folder, "text")], "is not a Flagkeep backup");
  });
});

describe("where the directory cannot be renamed", () => {
  const inside = (name: string) => {
    const target = join(folder, name);
    const staging = join(target, ".restoring-x");
    mkdirSync(staging, { recursive: true });
    mkdirSync(join(target, "lost+found"));
    for (const entry of ["a", "b"]) {
      writeFileSync(join(target, entry), "old");
      writeFileSync(join(staging, entry), "new");
    }
    return { target, staging, kind: "inside" as const, before: join(target, ".before-restore-y") };
  };

  test("its entries change places", async () => {
    const plan = inside("mount");
    chmodSync(plan.target, 0o755);
    expect(await swap(plan, [])).toBe(plan.before);
    expect(statSync(plan.target).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(plan.target, "a"), "utf8")).toBe("new");
    expect(readFileSync(join(plan.before, "b"), "utf8")).toBe("old");
    expect(readdirSync(plan.target).sort()).toEqual([".before-restore-y", "a", "b", "lost+found"]);
  });

  test("an error during the restore changes nothing", async () => {
    const plan = inside("broken");
    // A folder that is not empty cannot be replaced by a file.
    mkdirSync(join(plan.before, "b", "in the way"), { recursive: true });
    const before = getContent(plan.target);
    const error = await swap(plan, []).catch((failure: unknown) => failure);
    expect(error).toBeInstanceOf(Error);
    expect(getContent(plan.target)).toBe(before);
  });
});

/** The newest entries of the journal, wherever they are at this moment. */
async function segmentsBehind(seq: number): Promise<Entry[]> {
  const { journal, archive } = paths(source.dataDir);
  const found = new Map<string, Buffer>();
  for (const archived of listArchive(archive, "realtime")) {
    const { segments } = await readArchived(archived);
    for (const { first, last, bytes } of segments) if (last > seq) found.set(segmentFileName(first), bytes);
  }
  for (const name of readdirSync(join(journal, "realtime"))) {
    const bytes = readFileSync(join(journal, "realtime", name));
    if (scanSegment(bytes)!.last > seq) found.set(name, bytes);
  }
  return [...found].sort().map(([name, data]) => ({ name: `journal/realtime/${name}`, data }));
}

test("stores of different moments: the copies of persons for analysis are rebuilt", async () => {
  const earlier = await getEntries(file);
  await source.batch(
    Array.from({ length: 5 }, (_, n) => ({
      event: "later",
      distinct_id: `late-${n}`,
      properties: { $set: { n } },
    })),
  );
  await source.eventsWhenStored(15);
  const segments = await segmentsBehind(10);
  // Asking makes the copies follow, and what they followed is forgotten.
  await flagkeep(["query", "SELECT count(*) FROM persons", "--data-dir", source.dataDir]);
  const later = await getEntries((await create(source.dataDir, folder)).file);
  const getManifest = ([first]: Entry[]) => JSON.parse(first!.data.toString()) as Manifest;
  const old = getManifest(earlier);
  const manifest = getManifest(later);
  const events = earlier.find(({ name }) => name === "events.duckdb")!;
  const stores = later.filter(({ name }) => !/manifest|journal/.test(name));
  const mixed = [...stores.map((entry) => (entry.name === events.name ? events : entry)), ...segments];
  manifest.parts = mixed.map(({ name, data }) => ({
    name,
    bytes: data.length,
    sha256: createHash("sha256").update(data).digest("hex"),
  }));
  manifest.projects[0]!.events = old.projects[0]!.events;
  const path = await pack(join(folder, "mixed.tar.zst"), [
    { name: "manifest.json", data: Buffer.from(JSON.stringify(manifest)) },
    ...mixed,
  ]);
  const target = join(folder, "mixed");
  await json("restore", path, "--data-dir", target);
  const query = ["query", "SELECT count(*) AS n FROM persons", "--data-dir", target, "--json"];
  const { stdout, stderr } = await flagkeep(query);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toMatchObject({ rows: [{ n: 15 }] });
}, 30_000);

test("a stopped server is backed up, also one that crashed", async () => {
  const directory = await initializedDirectory();
  const crashed = await ServerProcess.start({ directory, args: ["--journal-seal-interval", "60s"] });
  await crashed.batch([{ event: "seen", distinct_id: "a" }]);
  await crashed.kill();
  const { file: created, positions } = await create(directory.dataDir, join(folder, "stopped"));
  expect(positions.find(({ lane }) => lane === "realtime")!.last_seq).toBe(1);
  const target = join(folder, "from-stopped");
  await json("restore", created, "--data-dir", target);
  const copy = await ServerProcess.start({
    directory: { dataDir: target, initialized: directory.initialized },
  });
  expect((await copy.eventsWhenStored(1))[0]!.distinct_id).toBe("a");
  expect(await copy.stop()).toBe(0);
  rmSync(directory.dataDir, { recursive: true });
}, 30_000);

test("a backup of the first format restores, whatever the newest version is", async () => {
  const old = resolve(import.meta.dir, "testdata/format-1.tar.zst");
  const { made: created } = JSON.parse(
    readFileSync(resolve(import.meta.dir, "testdata/format-1.json"), "utf8"),
  );
  const target = join(folder, "old");
  expect(await flagkeep(["backup", "verify", old, "--data-dir", target])).toMatchObject({ code: 0 });
  await json("restore", old, "--data-dir", target);
  const copy = await ServerProcess.start({ directory: { dataDir: target, initialized: created } });
  const events = await copy.eventsWhenStored(4);
  expect(events.map(({ event }) => event).sort()).toEqual(["$identify", "bought", "imported", "seen"]);
  const flags = await copy.post("/flags/?v=2", { api_key: copy.token, distinct_id: "ann" });
  expect(await flags.json()).toMatchObject({ flags: { "new-checkout": { enabled: true } } });
  expect(await copy.stop()).toBe(0);
}, 30_000);

test("a journal whose newest segment is corrupt before its end is not backed up as complete", async () => {
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const crashed = await ServerProcess.start({ directory, args: ["--journal-seal-interval", "60s"] });
  for (const event of ["one", "two", "three"]) await crashed.capture({ event, distinct_id: "a" });
  await crashed.kill();
  const segment = join(dataDir, "journal", "realtime", segmentFileName(1));
  const whole = readFileSync(segment, "utf8");
  writeFileSync(segment, whole.replace('"event":"two"', '"event":"TWO"'));
  const { code, stdout, stderr } = await flagkeep(["backup", "create", "--data-dir", dataDir]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(`realtime/${segmentFileName(1)} is corrupt`);
  // The next start loads what can be read, says what cannot, and then there is a backup again.
  const next = await ServerProcess.start({ directory });
  expect((await next.eventsWhenStored(2)).map(({ event }) => event)).toEqual(["one", "three"]);
  expect(await next.stop()).toBe(0);
  expect((await create(dataDir)).events).toBe(2);
  rmSync(dataDir, { recursive: true });
}, 30_000);
