/** Writes files of backups: after a check of the free space, hashed, and without disturbing the journal. */

import { createHash } from "node:crypto";
import { createReadStream, mkdirSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { createTarPacker } from "modern-tar";
import { systemDisk } from "../journal/disk.ts";
import { DiskSpaceError } from "./errors.ts";
import { type Manifest, manifestName } from "./manifest.ts";

/**
 * `paced`: synced in small steps, with the disk idle half of the time. `temporary`: deleted soon; the first bytes need
 * not reach the disk at all. Then paced. `fast`: no concurrent latency-sensitive work.
 */
export type WriteManner = "paced" | "temporary" | "fast";

const KiB = 1024;
/** The journal waits for a write in progress: 1 MiB makes its syncs four times as long, 128 KiB adds a tenth. */
const chunkBytes = { paced: 128 * KiB, temporary: 128 * KiB, fast: 32 * 1024 * KiB };

/** Bytes of temporary files written without a sync; the first sync writes them all, while the journal waits. */
const unpacedBytesMax = 4 * 1024 * KiB;
let unpacedBytes = 0;

/** Appends to a file and hashes everything written. The opener syncs the last bytes. */
export class HashedFile {
  private readonly hash = createHash("sha256");
  private bytes = 0;
  private unsynced = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly manner: WriteManner,
  ) {}

  async write(chunk: Uint8Array): Promise<void> {
    this.hash.update(chunk);
    for (let done = 0; done < chunk.length; ) {
      const part = chunk.subarray(done, done + chunkBytes[this.manner] - this.unsynced);
      const { bytesWritten } = await this.file.write(part);
      done += bytesWritten;
      this.bytes += bytesWritten;
      await this.written(bytesWritten);
    }
  }

  private async written(bytes: number): Promise<void> {
    if (this.manner === "temporary" && unpacedBytes < unpacedBytesMax) {
      unpacedBytes += bytes;
      return;
    }
    this.unsynced += bytes;
    if (this.unsynced < chunkBytes[this.manner]) return;
    this.unsynced = 0;
    const start = performance.now();
    await this.file.datasync();
    if (this.manner !== "fast") await Bun.sleep(performance.now() - start);
  }

  result(): { bytes: number; sha256: string } {
    return { bytes: this.bytes, sha256: this.hash.copy().digest("hex") };
  }
}

const readBytes = 1024 * 1024;

const skippableMagic = 0x184d2a5e;
const endPattern = /^flagkeep backup end (\d{20}) ([0-9a-f]{64})\n$/;
/** Bytes of the last frame: its header and its text. */
export const endBytes = 8 + "flagkeep backup end ".length + 20 + 1 + 64 + 1;

/** The last frame of a backup. */
export function endFrame(bytes: number, sha256: string): Buffer {
  const text = `flagkeep backup end ${String(bytes).padStart(20, "0")} ${sha256}\n`;
  const head = Buffer.alloc(8);
  head.writeUInt32LE(skippableMagic, 0);
  head.writeUInt32LE(text.length, 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

/** Content of the last frame; undefined if invalid. */
export function parseEndFrame(frame: Buffer): { bytes: number; sha256: string } | undefined {
  const match =
    frame.length === endBytes && frame.readUInt32LE(0) === skippableMagic
      ? endPattern.exec(frame.toString("latin1", 8))
      : null;
  if (match === null || frame.readUInt32LE(4) !== endBytes - 8) return undefined;
  return { bytes: Number(match[1]), sha256: match[2]! };
}

/**
 * Writes the file and makes it durable.
 *
 * @param path     must not exist.
 * @param getFile   returns the path of a part; only as many bytes as the manifest says are read.
 * @param onBytes  called with the number of part bytes read, for progress.
 * @returns        size and hash of the whole file.
 */
export async function writeBackupFile(
  path: string,
  manifest: Manifest,
  getFile: (part: string) => string,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<{ bytes: number; sha256: string }> {
  const { readable, controller } = createTarPacker();
  const mtime = new Date(manifest.created_at);
  const add = (name: string, size: number) =>
    controller.add({ name, size, mode: 0o600, uid: 0, gid: 0, mtime }).getWriter();
  const feed = async () => {
    const text = Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`);
    const head = add(manifestName, text.length);
    await head.write(new Uint8Array(text));
    await head.close();
    for (const { name, bytes } of manifest.parts) {
      const writer = add(name, bytes);
      if (bytes > 0) {
        for await (const chunk of readPart(getFile(name), bytes)) {
          await writer.write(chunk);
          onBytes(chunk.length);
        }
      }
      await writer.close();
    }
    controller.finalize();
  };
  const file = await open(path, "wx", 0o600);
  try {
    const sink = new HashedFile(file, "paced");
    const compress = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } });
    await Promise.all([
      feed().catch((error) => controller.error(error)),
      pipeline(Readable.fromWeb(readable as never), compress, async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) await sink.write(chunk);
      }),
    ]);
    const body = sink.result();
    await sink.write(endFrame(body.bytes, body.sha256));
    await file.sync();
    return sink.result();
  } finally {
    await file.close();
  }
}

/** The first bytes of a file, in chunks that belong to the reader. */
export function readPart(path: string, bytes: number): AsyncIterable<Uint8Array<ArrayBuffer>> {
  return createReadStream(path, { end: bytes - 1, highWaterMark: readBytes }) as never;
}

/** Free and total bytes of a folder's disk; tests inject another disk. */
export type FreeSpace = (folder: string) => Promise<{ freeBytes: number; totalBytes: number }>;

/** Includes DuckDB's library, which is unpacked next to the stores. */
const marginBytes = 128 * 1024 * 1024;

/** @throws {DiskSpaceError} too little space on the disk of the folder, which is created when missing. */
export async function assertDiskSpace(
  folder: string,
  bytes: number,
  spaceOf: FreeSpace = systemDisk.space,
  reserveBytes = 0,
): Promise<void> {
  // Synchronous: an asynchronous mkdir could run after an interrupted command has cleaned up.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { freeBytes, totalBytes } = await spaceOf(folder);
  // Like the journal's reserve: at most 5% of the disk.
  const needed = bytes + Math.max(marginBytes, Math.min(reserveBytes, totalBytes * 0.05));
  if (freeBytes < needed) throw new DiskSpaceError(folder, needed, freeBytes);
}
