/** The bytes of what is imported: a file or standard input, unpacked when it is packed with gzip or Zstandard. */

import { createReadStream } from "node:fs";
import type { Transform } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { AppError } from "../../lib/errors.ts";
import { ZstdFrames } from "./zstd-frames.ts";

/** The file is of another kind than was said, or cannot be opened. */
export class FileUnreadable extends AppError {
  readonly code = "file_unreadable";
  override readonly hint = "Check the path and --format.";
}

/** The file was readable up to some place and is not behind it. */
export class InputDamaged extends AppError {
  readonly code = "input_damaged";
  override readonly hint = "What is before the damage was taken; mend the file and use --resume.";
}

/** Small, so that little is lost before the place where a packed file is damaged. */
const packedChunkBytes = 64 * 1024;
const chunkBytes = 1024 * 1024;

/**
 * Reads from the beginning to the end. Packing is recognised by the first bytes, whatever the name.
 *
 * @param path    absolute, or `-` for standard input.
 * @param onBytes told of bytes as they are read, before unpacking.
 * @throws {FileUnreadable} @throws {InputDamaged} after the bytes before the damage were given.
 */
export async function* readInput(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const chunks = rawChunks(path, onBytes);
  const head: Buffer[] = [];
  let headBytes = 0;
  while (headBytes < 4) {
    const { value, done } = await chunks.next();
    if (done) break;
    head.push(value);
    headBytes += value.length;
  }
  const first = Buffer.concat(head);
  const all = prefixed(first, chunks);
  if (first.length >= 2 && first.readUInt16BE() === 0x1f8b) {
    yield* unpacked(path, all, createGunzip({ chunkSize: chunkBytes / 4 }));
  } else if (first.length >= 4 && first.readUInt32LE() === 0xfd2fb528) {
    yield* unpacked(path, wholeFrames(all), createZstdDecompress({ chunkSize: chunkBytes / 4 }));
  } else yield* all;
}

async function* rawChunks(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const source = path === "-" ? process.stdin : createReadStream(path, { highWaterMark: chunkBytes });
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      onBytes(chunk.length);
      yield chunk;
    }
  } catch (error) {
    throw new FileUnreadable(`${path} cannot be read (${(error as Error).message}).`);
  }
}

async function* prefixed(first: Buffer, rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first;
  yield* rest;
}

/** Ends with an error where a frame is cut off or none: the decompressor does not notice it. */
async function* wholeFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const frames = new ZstdFrames();
  for await (const chunk of chunks) {
    const sound = frames.take(chunk);
    yield chunk.subarray(0, sound);
    if (sound < chunk.length) throw new Error("there is no frame where one should begin");
  }
  if (!frames.isAtEnd) throw new Error("unexpected end of file");
}

/** Unlike a pipe, gives everything that was unpacked before an error. */
async function* unpacked(
  path: string,
  chunks: AsyncIterable<Buffer>,
  unpacker: Transform,
): AsyncGenerator<Buffer> {
  let failure: Error | undefined;
  let wake = () => {};
  const results: Buffer[] = [];
  unpacker.on("data", (chunk: Buffer) => void results.push(chunk));
  unpacker.on("end", () => wake());
  unpacker.on("error", (error) => {
    failure = error;
    wake();
  });
  const step = (start: (done: () => void) => void) =>
    new Promise<void>((resolve) => {
      wake = resolve;
      start(resolve);
    });
  try {
    try {
      for await (const chunk of chunks) {
        for (let at = 0; at < chunk.length && failure === undefined; at += packedChunkBytes) {
          const part = chunk.subarray(at, at + packedChunkBytes);
          await step((done) => void unpacker.write(part, () => done()));
          yield* results.splice(0);
        }
        if (failure !== undefined) break;
      }
    } catch (error) {
      failure ??= error as Error;
    }
    if (failure === undefined) await step(() => void unpacker.end());
    yield* results.splice(0);
    if (failure !== undefined)
      throw failure instanceof AppError
        ? failure
        : new InputDamaged(`${path} is damaged behind what could be unpacked (${failure.message}).`);
  } finally {
    unpacker.destroy();
  }
}
