/** Where an export goes: a file that is there whole or not at all, or standard output. */

import { realpathSync, rmSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import { syncFolder } from "../../journal/disk.ts";
import { AppError } from "../../lib/errors.ts";
import { onInterrupt } from "../../lib/interrupt.ts";
import { Count, exactly } from "../../lib/schema.ts";
import type { Sink } from "./writer.ts";

/** What `export … --json` prints. */
export const ExportSummary = exactly({
  rows: Count,
  file: Type.String({ description: "Absolute path." }),
});
export type ExportSummary = Static<typeof ExportSummary>;

/** A file cannot be made there. */
class OutUnusable extends AppError {
  readonly code = "out_unusable";
  override readonly hint = "Name a file in a folder that exists.";
}

/** @throws {OutUnusable} before anything was exported. */
export function checkPlace(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new OutUnusable(`${path} is a folder.`);
  }
  const folder = dirname(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new OutUnusable(`There is no folder ${folder}.`);
  }
}

/**
 * Does the work with a file that gets its name only when the work is done and its bytes are on the disk. A link stays, and
 * what it leads to is replaced; what is no file, such as a pipe or /dev/null, is written to as it is.
 */
export async function intoFile<Result>(
  named: string,
  work: (sink: Sink) => Promise<Result>,
): Promise<Result> {
  const there = statSync(named, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return await intoStream(named, work);
  const path = there === undefined ? named : realpathSync(named);
  const beside = `${path}.${process.pid}.part`;
  const stop = onInterrupt(() => rmSync(beside, { force: true }));
  try {
    const file = await open(beside, "w", 0o600);
    const result = await work(async (bytes) => void (await file.writeFile(bytes)))
      .then(async (done) => {
        await file.sync();
        return done;
      })
      .finally(() => file.close());
    await rename(beside, path);
    await syncFolder(dirname(path));
    return result;
  } finally {
    await rm(beside, { force: true });
    stop();
  }
}

async function intoStream<Result>(path: string, work: (sink: Sink) => Promise<Result>): Promise<Result> {
  const file = await open(path, "w");
  try {
    return await work(async (bytes) => void (await file.writeFile(bytes)));
  } finally {
    await file.close();
  }
}

/** Waits while whoever reads standard output is slower. */
export async function ontoOutput(bytes: Uint8Array): Promise<void> {
  if (!process.stdout.write(bytes)) {
    await new Promise<void>((done) => void process.stdout.once("drain", done));
  }
}
