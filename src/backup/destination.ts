/** Where backups are kept: a folder, or a bucket of an S3-compatible store with a prefix. */

import { createReadStream, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { S3File } from "bun";
import { syncFolder } from "../journal/disk.ts";
import { onInterrupt } from "../lib/interrupt.ts";
import { isPlaceForFiles } from "../lib/s3-address.ts";
import { DestinationFailed } from "./errors.ts";
import { HashedFile } from "./hashed-file.ts";
import { askStore, type S3Place, type S3Settings, s3AccessFrom, s3Failure, s3Place } from "./s3-access.ts";
import { type BackupSource, fileSource, objectSource } from "./source.ts";

export interface WrittenFile {
  path: string;
  bytes: number;
  sha256: string;
}

export interface Destination {
  /** As the operator would write it. */
  readonly name: string;
  /** Whether reading costs nothing but time. */
  readonly isLocal: boolean;
  /** Names of the backups in it, in any order. */
  list(): Promise<string[]>;
  /** @throws {BackupNotFound} */
  open(name: string): Promise<BackupSource>;
  /**
   * Brings a file there under its own name and checks size and SHA-256 of what arrived.
   *
   * @returns the name by which it can be opened. The local file is gone only when this resolves, if at all.
   * @throws {DestinationFailed}
   */
  put(file: WrittenFile, onBytes: (bytes: number) => void): Promise<string>;
  remove(name: string): Promise<void>;
  /** The pieces of incremental backups, by name. */
  pieces(): Promise<Map<string, { bytes: number; modifiedAt: number }>>;
  /**
   * Writes one under its path and checks what arrived; when this resolves it is durable.
   *
   * @throws {DestinationFailed}
   */
  putPiece(path: string, bytes: Uint8Array): Promise<void>;
}

/** Of incremental backups: what they share (see pieces.ts). */
export const piecePattern = /^[0-9a-f]{64}\.zst(\.age)?$/;
export const pieceKey = (name: string): string => `pieces/${name}`;
export const isIndexName = (name: string): boolean => name.endsWith(".index.json");

/** Name of a backup taken at this moment. */
export function backupName(at: Date, ending: "tar.zst" | "tar.zst.age" | "index.json"): string {
  return `flagkeep-${at.toISOString().replaceAll(":", "-")}.${ending}`;
}

const namePattern = /^flagkeep-\d{4}-\d\d-\d\dT[\d.-]+Z\.(tar\.zst(\.age)?|index\.json)$/;

/**
 * @param text a path, or `s3://bucket/prefix`.
 * @throws {DestinationFailed} there are no credentials, or it is an address of another kind.
 */
export function destinationOf(text: string, s3: S3Settings): Destination {
  if (text.startsWith("s3://")) return new Bucket(s3Place(text, s3AccessFrom(s3, process.env)));
  if (!isPlaceForFiles(text))
    throw new DestinationFailed(`${text} is no place for backups.`, "Name a folder, or s3://bucket/prefix.");
  return new Folder(resolve(text));
}

class Folder implements Destination {
  readonly isLocal = true;

  constructor(readonly name: string) {}

  async list(): Promise<string[]> {
    return this.namesIn(this.name).filter((name) => namePattern.test(name));
  }

  /** None of a folder that is not there. */
  private namesIn(folder: string): string[] {
    try {
      return readdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new DestinationFailed(`${this.name} cannot be read (${(error as Error).message}).`);
    }
  }

  async open(name: string): Promise<BackupSource> {
    return fileSource(join(this.name, name));
  }

  async put(file: WrittenFile, onBytes: (bytes: number) => void): Promise<string> {
    const target = join(this.name, basename(file.path));
    try {
      await mkdir(this.name, { recursive: true, mode: 0o700 });
      await this.removeTorn();
      await rename(file.path, target).catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== "EXDEV") throw error;
        await copyBeside(file, target, onBytes);
      });
      await syncFolder(this.name);
    } catch (error) {
      if (error instanceof DestinationFailed) throw error;
      throw new DestinationFailed(`${this.name} cannot be written (${(error as Error).message}).`);
    }
    return target;
  }

  async remove(name: string): Promise<void> {
    try {
      // Whoever reads it, as a download or a restore elsewhere, reads it to its end.
      await rm(join(this.name, name), { force: true });
    } catch (error) {
      throw new DestinationFailed(
        `${join(this.name, name)} cannot be removed (${(error as Error).message}).`,
      );
    }
  }

  async pieces() {
    const folder = join(this.name, pieceKey(""));
    const found = new Map<string, { bytes: number; modifiedAt: number }>();
    for (const name of this.namesIn(folder)) {
      const stats = piecePattern.test(name)
        ? statSync(join(folder, name), { throwIfNoEntry: false })
        : undefined;
      if (stats !== undefined) found.set(name, { bytes: stats.size, modifiedAt: stats.mtimeMs });
    }
    return found;
  }

  async putPiece(path: string, bytes: Uint8Array): Promise<void> {
    const target = join(this.name, path);
    try {
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writtenBeside(target, async (part) => {
        const handle = await open(part, "wx", 0o600);
        try {
          await handle.writeFile(bytes);
          await handle.sync();
        } finally {
          await handle.close();
        }
      });
      await syncFolder(dirname(target));
    } catch (error) {
      throw new DestinationFailed(`${this.name} cannot be written (${(error as Error).message}).`);
    }
  }

  /** What killed processes were writing here; a file that still grows was changed just now. */
  private async removeTorn(): Promise<void> {
    for (const folder of [this.name, join(this.name, pieceKey(""))]) {
      for (const name of this.namesIn(folder)) {
        const whole = name.slice(0, -partEnding.length);
        if (whole + partEnding !== name || !(namePattern.test(whole) || piecePattern.test(whole))) continue;
        const path = join(folder, name);
        const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
        if (Date.now() - changedAt > tornMs) await rm(path, { force: true });
      }
    }
  }
}

/** A file has it until it is whole. */
const partEnding = ".part";
/** One that nobody has written to for so long is not being written any more. */
const tornMs = 3_600_000;

/** Has a file written under another name, which it loses when it is whole; of one that is not, nothing stays. */
async function writtenBeside(target: string, write: (part: string) => Promise<void>): Promise<void> {
  const part = `${target}${partEnding}`;
  const stop = onInterrupt(() => rmSync(part, { force: true }));
  try {
    await rm(part, { force: true });
    await write(part);
    await rename(part, target);
  } finally {
    await rm(part, { force: true });
    stop();
  }
}

/** Onto another disk: whole or not at all. */
async function copyBeside(file: WrittenFile, target: string, onBytes: (bytes: number) => void) {
  await writtenBeside(target, async (part) => {
    const handle = await open(part, "wx+", 0o600);
    try {
      const sink = new HashedFile(handle, "paced");
      for await (const chunk of createReadStream(file.path, { highWaterMark: 1024 * 1024 })) {
        await sink.write(chunk as Buffer);
        onBytes(chunk.length);
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
    await requireEqual(file, fileSource(part));
  });
}

/** Parts of an upload: as many as S3 allows carry 160 GB; few of them are in memory. */
const partBytes = 16 * 1024 * 1024;
const partsAtOnce = 2;
const retries = 3;

class Bucket implements Destination {
  readonly isLocal = false;
  readonly name: string;
  private readonly prefix: string;

  constructor(private readonly place: S3Place) {
    this.prefix = place.key === "" ? "" : `${place.key}/`;
    this.name = `s3://${place.bucket}/${place.key}`.replace(/\/$/, "");
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const { key } of this.objects("flagkeep-")) {
      const name = key.slice(this.prefix.length);
      if (namePattern.test(name)) names.push(name);
    }
    return names;
  }

  async pieces() {
    const found = new Map<string, { bytes: number; modifiedAt: number }>();
    for await (const { key, size, lastModified } of this.objects(pieceKey(""))) {
      const name = key.slice(this.prefix.length + pieceKey("").length);
      if (piecePattern.test(name)) {
        found.set(name, {
          bytes: size ?? 0,
          modifiedAt: lastModified === undefined ? 0 : Date.parse(lastModified),
        });
      }
    }
    return found;
  }

  private async *objects(
    prefix: string,
  ): AsyncGenerator<{ key: string; size?: number; lastModified?: string }> {
    try {
      for (let continuationToken: string | undefined; ; ) {
        const order = { prefix: this.prefix + prefix, maxKeys: 1_000, continuationToken };
        const page = await askStore(() => this.place.client.list(order));
        yield* page.contents ?? [];
        if (!page.isTruncated || page.nextContinuationToken === undefined) return;
        continuationToken = page.nextContinuationToken;
      }
    } catch (error) {
      throw s3Failure(`Listing ${this.name}`, error);
    }
  }

  async putPiece(path: string, bytes: Uint8Array): Promise<void> {
    const object = this.place.client.file(this.prefix + path);
    try {
      await askStore(() => object.write(bytes, { type: "application/octet-stream" }));
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      await requireEqual({ path, bytes: bytes.length, sha256 }, await this.open(path));
    } catch (error) {
      await object.delete().catch(() => undefined);
      throw error instanceof DestinationFailed ? error : s3Failure(`Uploading to ${this.name}`, error);
    }
  }

  async open(name: string): Promise<BackupSource> {
    return await objectSource({ ...this.place, key: this.prefix + name });
  }

  async put(file: WrittenFile, onBytes: (bytes: number) => void): Promise<string> {
    const name = basename(file.path);
    const object = this.place.client.file(this.prefix + name);
    let told = 0;
    const counted = (sent: number) => {
      onBytes(Math.max(0, sent - told));
      told = Math.max(told, sent);
    };
    try {
      // Parts are sent again by themselves; what opens and closes the upload is not.
      await askStore(() => upload(file, object, counted));
      await requireEqual(file, await this.open(name));
    } catch (error) {
      // Whatever arrived is not a backup.
      await object.delete().catch(() => undefined);
      throw error instanceof DestinationFailed ? error : s3Failure(`Uploading to ${this.name}`, error);
    }
    return `${this.name}/${name}`;
  }

  async remove(name: string): Promise<void> {
    try {
      await askStore(() => this.place.client.delete(this.prefix + name));
    } catch (error) {
      throw s3Failure(`Deleting ${this.name}/${name}`, error);
    }
  }
}

/** @param onSent told how many bytes have been sent. */
async function upload(file: WrittenFile, object: S3File, onSent: (bytes: number) => void): Promise<void> {
  const writer = object.writer({
    partSize: Math.max(partBytes, Math.ceil(file.bytes / 9_000)),
    queueSize: partsAtOnce,
    retry: retries,
    type: file.path.endsWith(".json") ? "application/json" : "application/octet-stream",
  });
  let sent = 0;
  for await (const chunk of createReadStream(file.path, { highWaterMark: 1024 * 1024 })) {
    writer.write(chunk as Buffer);
    await writer.flush();
    sent += chunk.length;
    onSent(sent);
  }
  await writer.end();
}

/** Reads back what arrived: only its bytes prove that they are the same, whatever kind of store it is. */
async function requireEqual(file: WrittenFile, arrived: BackupSource): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  for await (const chunk of arrived.stream()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  if (bytes === file.bytes && arrived.bytes === file.bytes && hash.digest("hex") === file.sha256) return;
  throw new DestinationFailed(
    `What arrived as ${arrived.name} is not what was sent (${bytes} of ${file.bytes} bytes).`,
    "Try again, or use another destination.",
  );
}
