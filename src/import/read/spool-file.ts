/** Temporary files with copies of input that is read more than once, or in another order. */

import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { UnreadableFileError } from "./input.ts";

/** A temporary file, which may take at most half of the free disk space. */
export class SpoolFile implements Disposable {
  readonly path: string;
  private readonly handle: number;
  private written = 0;

  constructor(
    workFolder: string,
    private readonly bytesMax = halfOfFreeDisk(workFolder),
  ) {
    removeAbandoned(workFolder);
    this.path = join(workFolder, `unpacked-${process.pid}-${crypto.randomUUID()}`);
    this.handle = openSync(this.path, "wx+", 0o600);
  }

  /** In bytes. */
  get length(): number {
    return this.written;
  }

  /** @throws {UnreadableFileError} it would be too large. */
  append(bytes: Uint8Array): void {
    if (this.written + bytes.length > this.bytesMax)
      throw new UnreadableFileError("A copy of the input would take more than half of the free disk space.");
    for (let at = 0; at < bytes.length; )
      at += writeSync(this.handle, bytes, at, bytes.length - at, this.written + at);
    this.written += bytes.length;
  }

  /** The bytes at a position; fewer at the end of the file. */
  read(position: number, bytesMax: number): Buffer {
    const bytes = Buffer.allocUnsafe(Math.min(bytesMax, this.written - position));
    return bytes.subarray(0, readSync(this.handle, bytes, 0, bytes.length, position));
  }

  [Symbol.dispose](): void {
    closeSync(this.handle);
    rmSync(this.path, { force: true });
  }
}

function halfOfFreeDisk(folder: string): number {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { bavail, bsize } = statfsSync(folder);
  return (bavail * bsize) / 2;
}

/** Uses a copy of the bytes, which is deleted afterwards. @throws {UnreadableFileError} it would be too large. */
export async function* spooled<Item>(
  bytes: AsyncIterable<Buffer>,
  workFolder: string,
  use: (path: string) => AsyncIterable<Item>,
): AsyncGenerator<Item> {
  using copy = new SpoolFile(workFolder);
  for await (const chunk of bytes) copy.append(chunk);
  yield* use(copy.path);
}

/** Deletes copies of processes that were killed or crashed: they may be as large as the disk. */
function removeAbandoned(workFolder: string): void {
  for (const name of readdirSync(workFolder)) {
    const pid = /^unpacked-(\d+)-/.exec(name)?.[1];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(workFolder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
