/** Sources of a backup's bytes: a file, or an object of an S3-compatible store. */

import { createReadStream, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { S3File } from "bun";
import { BackupNotFoundError } from "./errors.ts";
import {
  type S3Location,
  type S3Options,
  s3AccessFrom,
  s3Failure,
  s3Location,
  sendS3Request,
} from "./s3-access.ts";

export interface BackupSource {
  /** As the operator would write it. */
  readonly name: string;
  readonly bytes: number;
  /** @param end exclusive. */
  stream(start?: number, end?: number): AsyncIterable<Uint8Array>;
  /** A file in the same folder or below it, by its relative path. @throws {BackupNotFoundError} */
  sibling(path: string): Promise<BackupSource>;
}

const plainS3: S3Options = { endpoint: "", region: "", credentialsFile: "" };

/**
 * @param name a path, or `s3://bucket/key`.
 * @throws {BackupNotFoundError} @throws {DestinationError}
 */
export async function openSource(name: string, s3: S3Options = plainS3): Promise<BackupSource> {
  return name.startsWith("s3://")
    ? await objectSource(s3Location(name, s3AccessFrom(s3, process.env)))
    : fileSource(resolve(name));
}

/** @throws {BackupNotFoundError} */
export function fileSource(path: string): BackupSource {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) throw new BackupNotFoundError(path, stats?.isDirectory());
  return {
    name: path,
    bytes: stats.size,
    stream: (start = 0, end = Number.POSITIVE_INFINITY) =>
      createReadStream(path, { start, end: end - 1, highWaterMark: 1024 * 1024 }),
    sibling: async (relative) => fileSource(join(dirname(path), relative)),
  };
}

/** @throws {BackupNotFoundError} @throws {DestinationError} */
export async function objectSource(location: S3Location): Promise<BackupSource> {
  const { client, bucket, key } = location;
  const name = `s3://${bucket}/${key}`;
  const object = client.file(key);
  const stat = await sendS3Request(() => object.stat(), isNoSuchKey).catch(async (error: unknown) => {
    const reported = await getReason(object, error);
    throw isNoSuchKey(reported) ? new BackupNotFoundError(name) : s3Failure(`Reading ${name}`, reported);
  });
  return {
    name,
    bytes: stat.size,
    sibling: (relative) =>
      objectSource({ ...location, key: key.slice(0, key.lastIndexOf("/") + 1) + relative }),
    async *stream(start = 0, end = stat.size) {
      const last = Math.min(end, stat.size);
      for (let from = start; from < last; from += rangeBytes) {
        yield await readRange(object, name, from, Math.min(from + rangeBytes, last));
      }
    },
  };
}

/** Access and rate-limit errors do not prove that the object is missing: callers may delete what is missing. */
function isNoSuchKey(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === "NoSuchKey" || code === "NotFound";
}

/** A HEAD response has no body, and so no reason: requesting one byte of the object reports it. */
async function getReason(object: S3File, error: unknown): Promise<unknown> {
  if ((error as { code?: string }).code !== "UnknownError") return error;
  return await object
    .slice(0, 1)
    .arrayBuffer()
    .then(
      () => error,
      (reported: unknown) => reported,
    );
}

/** Objects are read in ranges: a single stream would be buffered as fast as the store sends. */
const rangeBytes = 8 * 1024 * 1024;

async function readRange(object: S3File, name: string, start: number, end: number): Promise<Uint8Array> {
  return await sendS3Request(async () => {
    const bytes = new Uint8Array(await object.slice(start, end).arrayBuffer());
    if (bytes.length === end - start) return bytes;
    throw new Error(`received ${bytes.length} bytes instead of ${end - start}`);
  }, isNoSuchKey).catch((error: unknown) => {
    throw isNoSuchKey(error) ? new BackupNotFoundError(name) : s3Failure(`Reading ${name}`, error);
  });
}
