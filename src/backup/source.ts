/** Where the bytes of a backup come from: a file, or an object of an S3-compatible store. */

import { createReadStream, statSync } from "node:fs";
import { resolve } from "node:path";
import { BackupNotFound } from "./errors.ts";

export interface BackupSource {
  /** As the operator would write it. */
  readonly name: string;
  readonly bytes: number;
  /** @param end the first byte that is not wanted. */
  stream(start?: number, end?: number): AsyncIterable<Uint8Array>;
}

/**
 * @param name a path, or `s3://bucket/key`.
 * @throws {BackupNotFound}
 */
export async function openSource(name: string): Promise<BackupSource> {
  return fileSource(resolve(name));
}

/** @throws {BackupNotFound} */
export function fileSource(path: string): BackupSource {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isFile()) throw new BackupNotFound(path);
  return {
    name: path,
    bytes: stats.size,
    stream: (start = 0, end = Number.POSITIVE_INFINITY) =>
      createReadStream(path, { start, end: end - 1, highWaterMark: 1024 * 1024 }),
  };
}
