/** Puts an exported file where it was asked for: whole or not at all. */

import { createReadStream, statSync } from "node:fs";
import { copyFile, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError } from "../errors.ts";
import { syncFolder } from "../journal/disk.ts";

/** A file can not be made there. */
export class OutUnusable extends AppError {
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

/** By a temporary name in the same folder, also when what is moved is on another disk. */
export async function putInPlace(from: string, to: string): Promise<void> {
  const beside = `${to}.${process.pid}.part`;
  try {
    await copyFile(from, beside);
    const file = await open(beside, "r+");
    await file.sync().finally(() => file.close());
    await rename(beside, to);
    await syncFolder(dirname(to));
  } finally {
    await rm(beside, { force: true });
  }
}

/** Writes the file to standard output. */
export async function putOnOutput(from: string): Promise<void> {
  for await (const chunk of createReadStream(from)) {
    if (!process.stdout.write(chunk)) {
      await new Promise<void>((done) => void process.stdout.once("drain", done));
    }
  }
}
