/** Backups for tests: made by the executable, taken apart and put together again. */

import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { packTar, unpackTar } from "modern-tar";
import type { Manifest } from "../../src/backup/manifest.ts";
import { endFrame } from "../../src/backup/write-file.ts";
import { flagkeep } from "../support/server.ts";

export interface CreatedBackup {
  file: string;
  bytes: number;
  sha256: string;
  created_at: string;
  events: number;
  positions: { lane: string; loaded_seq: number; applied_seq: number; last_seq: number }[];
}

/** Runs `backup create --json`; nothing but the result may be printed. */
export async function create(dataDir: string, ...args: string[]): Promise<CreatedBackup> {
  const { stdout, stderr, code } = await flagkeep([
    "backup",
    "create",
    ...args,
    "--data-dir",
    dataDir,
    "--json",
  ]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  expect(stdout.trimEnd()).not.toContain("\n");
  return JSON.parse(stdout) as CreatedBackup;
}

/** Runs a command of `backup` and returns its JSON. */
export async function json<Result>(...args: string[]): Promise<Result> {
  const { stdout, stderr, code } = await flagkeep(["backup", ...args, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout) as Result;
}

export interface Entry {
  name: string;
  data: Buffer;
}

export async function getEntries(file: string): Promise<Entry[]> {
  const entries = await unpackTar(new Uint8Array(zstdDecompressSync(readFileSync(file))));
  return entries.map(({ header, data }) => ({ name: header.name, data: Buffer.from(data!) }));
}

/** Writes a file as a backup is written, whatever is in it. */
export async function pack(file: string, entries: readonly Entry[]): Promise<string> {
  const tar = await packTar(
    entries.map(({ name, data }) => ({ header: { name, size: data.length }, body: new Uint8Array(data) })),
  );
  const body = zstdCompressSync(tar);
  const hash = createHash("sha256").update(body).digest("hex");
  writeFileSync(file, Buffer.concat([body, endFrame(body.length, hash)]));
  return file;
}

/** A copy with another manifest. */
export async function withManifest(
  file: string,
  target: string,
  change: (manifest: Manifest) => object,
): Promise<string> {
  const [first, ...rest] = await getEntries(file);
  const manifest = change(JSON.parse(first!.data.toString()) as Manifest);
  return await pack(target, [{ name: first!.name, data: Buffer.from(JSON.stringify(manifest)) }, ...rest]);
}

/** Every file below a folder with its hash, to see that nothing changed. */
export function getContent(folder: string): string {
  return Bun.spawnSync(["sh", "-c", "find . -type f | sort | xargs -r sha256sum"], {
    cwd: folder,
  }).stdout.toString();
}
