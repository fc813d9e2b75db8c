/** Where the bytes of a backup come from: a file, or an object of an S3-compatible store. */

import { createReadStream, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { S3File } from "bun";
import { BackupNotFound } from "./errors.ts";
import { askStore, type S3Place, type S3Settings, s3AccessFrom, s3Failure, s3Place } from "./s3-access.ts";

export interface BackupSource {
  /** As the operator would write it. */
  readonly name: string;
  readonly bytes: number;
  /** @param end the first byte that is not wanted. */
  stream(start?: number, end?: number): AsyncIterable<Uint8Array>;
  /** What is in the same folder or below it, by its relative path. @throws {BackupNotFound} */
  beside(path: string): Promise<BackupSource>;
}

const plainS3: S3Settings = { endpoint: "", region: "", credentialsFile: "" };

/**
 * @param name a path, or `s3://bucket/key`.
 * @throws {BackupNotFound} @throws {DestinationFailed}
 */
export async function openSource(name: string, s3: S3Settings = plainS3): Promise<BackupSource> {
  return name.startsWith("s3://")
    ? await objectSource(s3Place(name, s3AccessFrom(s3, process.env)))
    : fileSource(resolve(name));
}

/** @throws {BackupNotFound} */
export function fileSource(path: string): BackupSource {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) throw new BackupNotFound(path, stats?.isDirectory());
  return {
    name: path,
    bytes: stats.size,
    stream: (start = 0, end = Number.POSITIVE_INFINITY) =>
      createReadStream(path, { start, end: end - 1, highWaterMark: 1024 * 1024 }),
    beside: async (relative) => fileSource(join(dirname(path), relative)),
  };
}

/** @throws {BackupNotFound} @throws {DestinationFailed} */
export async function objectSource(place: S3Place): Promise<BackupSource> {
  const { client, bucket, key } = place;
  const name = `s3://${bucket}/${key}`;
  const object = client.file(key);
  const stat = await askStore(() => object.stat(), isNoSuchKey).catch(async (error: unknown) => {
    const told = await reasonOf(object, error);
    throw isNoSuchKey(told) ? new BackupNotFound(name) : s3Failure(`Reading ${name}`, told);
  });
  return {
    name,
    bytes: stat.size,
    beside: (relative) => objectSource({ ...place, key: key.slice(0, key.lastIndexOf("/") + 1) + relative }),
    async *stream(start = 0, end = stat.size) {
      const last = Math.min(end, stat.size);
      for (let from = start; from < last; from += rangeBytes) {
        yield await readRange(object, name, from, Math.min(from + rangeBytes, last));
      }
    },
  };
}

/** A store that refuses, or is busy, has not said that there is no such object: what is taken for gone may be deleted. */
function isNoSuchKey(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === "NoSuchKey" || code === "NotFound";
}

/** The answer to a question without a body has none either, and so no reason: that of a byte of the object tells it. */
async function reasonOf(object: S3File, error: unknown): Promise<unknown> {
  if ((error as { code?: string }).code !== "UnknownError") return error;
  return await object
    .slice(0, 1)
    .arrayBuffer()
    .then(
      () => error,
      (told: unknown) => told,
    );
}

/** An object is read in ranges: one stream over all of it would be buffered as fast as the store sends. */
const rangeBytes = 8 * 1024 * 1024;

async function readRange(object: S3File, name: string, start: number, end: number): Promise<Uint8Array> {
  return await askStore(async () => {
    const bytes = new Uint8Array(await object.slice(start, end).arrayBuffer());
    if (bytes.length === end - start) return bytes;
    throw new Error(`${bytes.length} bytes came instead of ${end - start}`);
  }, isNoSuchKey).catch((error: unknown) => {
    throw isNoSuchKey(error) ? new BackupNotFound(name) : s3Failure(`Reading ${name}`, error);
  });
}
