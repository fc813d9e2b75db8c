/** Backup destinations: a folder, or a bucket of an S3-compatible store with a prefix. */

import { createReadStream, readdirSync, rmSync, statSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { S3File } from "bun";
import { syncFolder } from "../journal/disk.ts";
import { onInterrupt } from "../lib/cancellation.ts";
import { isFileLocation } from "../lib/store-urls.ts";
import { DestinationError } from "./errors.ts";
import {
  type S3Location,
  type S3Options,
  s3AccessFrom,
  s3Failure,
  s3Location,
  sendS3Request,
} from "./s3-access.ts";
import { type BackupSource, fileSource, objectSource } from "./source.ts";
import { HashedFile } from "./write-file.ts";

export interface WrittenFile {
  path: string;
  bytes: number;
  sha256: string;
}

export interface Destination {
  /** As the operator would write it. */
  readonly name: string;
  /** Whether reads are free of charge. */
  readonly isLocal: boolean;
  /** Names of the backups, in any order. */
  list(): Promise<string[]>;
  /** @throws {BackupNotFoundError} */
  open(name: string): Promise<BackupSource>;
  /**
   * Stores a file under its own name and checks size and SHA-256 of the stored bytes.
   *
   * @returns the name by which it can be opened. The local file is removed, if at all, only when this resolves.
   * @throws {DestinationError}
   */
  put(file: WrittenFile, onBytes: (bytes: number) => void): Promise<string>;
  remove(name: string): Promise<void>;
  /** The chunks of incremental backups, by name. */
  chunks(): Promise<Map<string, { bytes: number; modifiedAt: number }>>;
  /**
   * Writes a chunk under its path and checks the stored bytes; it is durable when this resolves.
   *
   * @throws {DestinationError}
   */
  putChunk(path: string, bytes: Uint8Array): Promise<void>;
}

/** Chunks of incremental backups (see chunks.ts). */
export const chunkPattern = /^[0-9a-f]{64}\.zst(\.age)?$/;
export const chunkKey = (name: string): string => `pieces/${name}`;
export const isIndexName = (name: string): boolean => name.endsWith(".index.json");

/** Name of a backup created at this time. */
export function backupName(at: Date, ending: "tar.zst" | "tar.zst.age" | "index.json"): string {
  return `flagkeep-${at.toISOString().replaceAll(":", "-")}.${ending}`;
}

const namePattern = /^flagkeep-\d{4}-\d\d-\d\dT[\d.-]+Z\.(tar\.zst(\.age)?|index\.json)$/;

/**
 * @param text a path, or `s3://bucket/prefix`.
 * @throws {DestinationError} credentials are missing, or the address has another scheme.
 */
export function getDestination(text: string, s3: S3Options): Destination {
  if (text.startsWith("s3://")) return new Bucket(s3Location(text, s3AccessFrom(s3, process.env)));
  if (!isFileLocation(text))
    throw new DestinationError(
      `Invalid backup destination "${text}".`,
      "Use a folder or s3://bucket/prefix.",
    );
  return new Folder(resolve(text));
}

class Folder implements Destination {
  readonly isLocal = true;

  constructor(readonly name: string) {}

  async list(): Promise<string[]> {
    return this.namesIn(this.name).filter((name) => namePattern.test(name));
  }

  /** Empty for a missing folder. */
  private namesIn(folder: string): string[] {
    try {
      return readdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw new DestinationError(`${this.name} cannot be read (${(error as Error).message}).`);
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
        await copyDurably(file, target, onBytes);
      });
      await syncFolder(this.name);
    } catch (error) {
      if (error instanceof DestinationError) throw error;
      throw new DestinationError(`${this.name} cannot be written (${(error as Error).message}).`);
    }
    return target;
  }

  async remove(name: string): Promise<void> {
    try {
      // Readers, such as downloads and restores, always read to the end.
      await rm(join(this.name, name), { force: true });
    } catch (error) {
      throw new DestinationError(`${join(this.name, name)} cannot be removed (${(error as Error).message}).`);
    }
  }

  async chunks() {
    const folder = join(this.name, chunkKey(""));
    const found = new Map<string, { bytes: number; modifiedAt: number }>();
    for (const name of this.namesIn(folder)) {
      const stats = chunkPattern.test(name)
        ? statSync(join(folder, name), { throwIfNoEntry: false })
        : undefined;
      if (stats !== undefined) found.set(name, { bytes: stats.size, modifiedAt: stats.mtimeMs });
    }
    return found;
  }

  async putChunk(path: string, bytes: Uint8Array): Promise<void> {
    const target = join(this.name, path);
    try {
      await mkdir(dirname(target), { recursive: true, mode: 0o700 });
      await writeDurably(target, async (part) => {
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
      throw new DestinationError(`${this.name} cannot be written (${(error as Error).message}).`);
    }
  }

  /** Removes unfinished files of killed processes; a recently changed file may still grow. */
  private async removeTorn(): Promise<void> {
    for (const folder of [this.name, join(this.name, chunkKey(""))]) {
      for (const name of this.namesIn(folder)) {
        const whole = name.slice(0, -partEnding.length);
        if (whole + partEnding !== name || !(namePattern.test(whole) || chunkPattern.test(whole))) continue;
        const path = join(folder, name);
        const changedAt = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
        if (Date.now() - changedAt > tornMs) await rm(path, { force: true });
      }
    }
  }
}

/** Suffix of a file until it is complete. */
const partEnding = ".part";
/** Age after which an unfinished upload is considered abandoned. */
const tornMs = 3_600_000;

/** Writes a file under a temporary name and renames it once complete; an incomplete file is deleted. */
async function writeDurably(target: string, write: (part: string) => Promise<void>): Promise<void> {
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

/** Copies to another disk, atomically. */
async function copyDurably(file: WrittenFile, target: string, onBytes: (bytes: number) => void) {
  await writeDurably(target, async (part) => {
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
    await assertEqual(file, fileSource(part));
  });
}

/** Size of an upload part: the part limit of S3 allows 160 GB; few parts are in memory. */
const partBytes = 16 * 1024 * 1024;
const partsAtOnce = 2;
const retries = 3;

class Bucket implements Destination {
  readonly isLocal = false;
  readonly name: string;
  private readonly prefix: string;

  constructor(private readonly location: S3Location) {
    this.prefix = location.key === "" ? "" : `${location.key}/`;
    this.name = `s3://${location.bucket}/${location.key}`.replace(/\/$/, "");
  }

  async list(): Promise<string[]> {
    const names: string[] = [];
    for await (const { key } of this.objects("flagkeep-")) {
      const name = key.slice(this.prefix.length);
      if (namePattern.test(name)) names.push(name);
    }
    return names;
  }

  async chunks() {
    const found = new Map<string, { bytes: number; modifiedAt: number }>();
    for await (const { key, size, lastModified } of this.objects(chunkKey(""))) {
      const name = key.slice(this.prefix.length + chunkKey("").length);
      if (chunkPattern.test(name)) {
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
        const page = await sendS3Request(() => this.location.client.list(order));
        yield* page.contents ?? [];
        if (!page.isTruncated || page.nextContinuationToken === undefined) return;
        continuationToken = page.nextContinuationToken;
      }
    } catch (error) {
      throw s3Failure(`Listing ${this.name}`, error);
    }
  }

  async putChunk(path: string, bytes: Uint8Array): Promise<void> {
    const object = this.location.client.file(this.prefix + path);
    try {
      await sendS3Request(() => object.write(bytes, { type: "application/octet-stream" }));
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      await assertEqual({ path, bytes: bytes.length, sha256 }, await this.open(path));
    } catch (error) {
      await object.delete().catch(() => undefined);
      throw error instanceof DestinationError ? error : s3Failure(`Uploading to ${this.name}`, error);
    }
  }

  async open(name: string): Promise<BackupSource> {
    return await objectSource({ ...this.location, key: this.prefix + name });
  }

  async put(file: WrittenFile, onBytes: (bytes: number) => void): Promise<string> {
    const name = basename(file.path);
    const object = this.location.client.file(this.prefix + name);
    let reported = 0;
    const counted = (sent: number) => {
      onBytes(Math.max(0, sent - reported));
      reported = Math.max(reported, sent);
    };
    try {
      // The client retries parts, but not the requests that open and complete the upload.
      await sendS3Request(() => upload(file, object, counted));
      await assertEqual(file, await this.open(name));
    } catch (error) {
      // Whatever arrived is not a backup.
      await object.delete().catch(() => undefined);
      throw error instanceof DestinationError ? error : s3Failure(`Uploading to ${this.name}`, error);
    }
    return `${this.name}/${name}`;
  }

  async remove(name: string): Promise<void> {
    try {
      await sendS3Request(() => this.location.client.delete(this.prefix + name));
    } catch (error) {
      throw s3Failure(`Deleting ${this.name}/${name}`, error);
    }
  }
}

/** @param onSent receives how many bytes have been sent. */
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

/** Reads the stored bytes back: no other proof of equality works with every kind of store. */
async function assertEqual(file: WrittenFile, arrived: BackupSource): Promise<void> {
  const hash = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  for await (const chunk of arrived.stream()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  if (bytes === file.bytes && arrived.bytes === file.bytes && hash.digest("hex") === file.sha256) return;
  throw new DestinationError(
    `The upload of ${arrived.name} is incomplete or corrupt (${bytes} of ${file.bytes} bytes).`,
    "Try again, or use another destination.",
  );
}
