/** Output of an export: standard output, or a file that is either complete or absent. */

import { realpathSync, rmSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { syncFolder } from "../../journal/disk.ts";
import { onInterrupt } from "../../lib/cancellation.ts";
import { AppError } from "../../lib/errors.ts";
import { NonNegativeInt, strictObject } from "../../lib/schema.ts";
import type { Sink } from "./writer.ts";

/** Output of `export … --json`. */
export const ExportSummary = strictObject({
  rows: NonNegativeInt,
  file: Type.String({ description: "Absolute path." }),
});
export type ExportSummary = Static<typeof ExportSummary>;

/** The file cannot be created. */
class InvalidOutputError extends AppError {
  readonly code = "out_unusable";
  override readonly hint = "Use a file in an existing folder.";
}

/** @throws {InvalidOutputError} before anything was exported */
export function validateOutput(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InvalidOutputError(`${path} is a folder.`);
  }
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new InvalidOutputError(`Folder ${folder} does not exist.`);
  }
}

/**
 * Runs work with a file that is renamed to its path when the work is done and synced. Symbolic links are followed and
 * kept; special files, such as a pipe or /dev/null, are written directly.
 */
export async function writeToFile<Result>(
  named: string,
  work: (sink: Sink) => Promise<Result>,
): Promise<Result> {
  const there = statSync(named, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return await writeToStream(named, work);
  const path = there === undefined ? named : realpathSync(named);
  const partPath = `${path}.${process.pid}.part`;
  const stop = onInterrupt(() => rmSync(partPath, { force: true }));
  try {
    const file = await open(partPath, "w", 0o600);
    const result = await work(async (bytes) => void (await file.writeFile(bytes)))
      .then(async (done) => {
        await file.sync();
        return done;
      })
      .finally(() => file.close());
    await rename(partPath, path);
    await syncFolder(dirname(path));
    return result;
  } finally {
    await rm(partPath, { force: true });
    stop();
  }
}

async function writeToStream<Result>(path: string, work: (sink: Sink) => Promise<Result>): Promise<Result> {
  const file = await open(path, "w");
  try {
    return await work(async (bytes) => void (await file.writeFile(bytes)));
  } finally {
    await file.close();
  }
}

/** Waits while the reader of standard output is slower. */
export async function writeToStdout(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) {
    await new Promise<void>((done) => void process.stdout.once("drain", done));
  }
}
