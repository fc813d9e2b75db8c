/** Input that can be read only once: standard input, a pipe or a process substitution (`/dev/fd/63`). */

import { statSync } from "node:fs";
import { rawChunks } from "./input.ts";
import { SpoolFile } from "./spool-file.ts";

const chunkBytes = 1024 * 1024;

/** The path of standard input, and its name in messages. */
export const standardInput = "-";
export const standardInputName = "Standard input";

/** The name of an input in messages. */
export function getInputName(path: string): string {
  return path === standardInput ? standardInputName : path;
}

/** Whether the file at a path can be read only once. @param path absolute, or `-`. */
export function isPiped(path: string): boolean {
  return path === standardInput || statSync(path, { throwIfNoEntry: false })?.isFile() === false;
}

/**
 * The bytes of such input for several passes, one after the other: a pass reads what earlier ones have copied, then
 * further input as it arrives. The last pass copies nothing.
 */
export class PipedInput implements Disposable {
  private readonly source: AsyncGenerator<Buffer>;
  private readonly copy: SpoolFile;
  private isLastPass = false;
  private failure: unknown;

  /** @param onBytes called with the number of bytes that arrived. @throws {UnreadableFileError} */
  constructor(path: string, workFolder: string, onBytes: (bytes: number) => void) {
    this.source = rawChunks(path, onBytes);
    this.copy = new SpoolFile(workFolder);
  }

  /** From now on there is one pass. */
  startLastPass(): void {
    this.isLastPass = true;
  }

  /** All bytes, from the start. @throws {UnreadableFileError} also in later passes. */
  async *chunks(): AsyncGenerator<Buffer> {
    for (let at = 0; ; ) {
      while (at < this.copy.length) {
        const chunk = this.copy.read(at, chunkBytes);
        at += chunk.length;
        yield chunk;
      }
      const chunk = await this.next();
      if (chunk === undefined) return;
      if (this.isLastPass) yield chunk;
    }
  }

  /** Further input, which is copied unless this is the last pass. */
  private async next(): Promise<Buffer | undefined> {
    if (this.failure !== undefined) throw this.failure;
    try {
      const { value, done } = await this.source.next();
      if (done) return undefined;
      if (!this.isLastPass) this.copy.append(value);
      return value;
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    void this.source.return(undefined);
    this.copy[Symbol.dispose]();
  }
}
