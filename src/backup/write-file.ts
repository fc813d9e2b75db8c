/**
 * Writes a backup: a zstd-compressed tar archive of a manifest and the parts it names.
 *
 *   zstd( manifest.json, flagkeep.sqlite, … )  skippable zstd frame: length and SHA-256 of everything before
 *
 * `tar --zstd -xf` unpacks it. The last frame covers every byte of the file, the hashes of the parts identify a corrupt
 * one.
 */

import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { createTarPacker } from "modern-tar";
import { HashedFile } from "./hashed-file.ts";
import { type Manifest, manifestName } from "./manifest.ts";

const chunkBytes = 1024 * 1024;

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
  return createReadStream(path, { end: bytes - 1, highWaterMark: chunkBytes }) as never;
}
