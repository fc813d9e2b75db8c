/** The bytes of what is imported: a file or standard input, unpacked when it is packed with gzip or Zstandard. */

import { createReadStream } from "node:fs";
import type { Transform } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { AppError } from "../../lib/errors.ts";
import { ZstdFrames } from "../../lib/zstd-frames.ts";

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
/** What a file is can be told from so many bytes. */
const headBytes = 64 * 1024;
/** Of packing inside of packing. */
const layersMax = 3;

/** Bytes with whatever packed them taken off. */
export interface Peeled {
  /** The first bytes, or all when there are fewer. */
  head: Buffer;
  /** All bytes. @throws {InputDamaged} after the bytes before the damage were given. */
  bytes: AsyncIterable<Buffer>;
  packing: ("gzip" | "zstd")[];
  /** Leaves the bytes unread. */
  close: () => Promise<void>;
}

/** Unpacks what gzip or Zstandard packed. Packing is recognised by the first bytes, whatever the name. */
export async function peel(name: string, chunks: AsyncIterable<Buffer>): Promise<Peeled> {
  const packing: Peeled["packing"] = [];
  for (let all = chunks; ; ) {
    const { head, bytes, close } = await withHead(all);
    const isGzip = head.length >= 2 && head.readUInt16BE() === 0x1f8b;
    const isZstd = head.length >= 4 && head.readUInt32LE() === 0xfd2fb528;
    if ((!isGzip && !isZstd) || packing.length === layersMax) return { head, bytes, packing, close };
    packing.push(isGzip ? "gzip" : "zstd");
    const unpackedChunkBytes = { chunkSize: chunkBytes / 4 };
    all = isGzip
      ? unpacked(name, bytes, createGunzip(unpackedChunkBytes))
      : unpacked(name, wholeFrames(bytes), createZstdDecompress(unpackedChunkBytes));
  }
}

/** Reads ahead. Damage inside of the head is met where it is. */
async function withHead(chunks: AsyncIterable<Buffer>): Promise<Omit<Peeled, "packing">> {
  const iterator = chunks[Symbol.asyncIterator]();
  const first: Buffer[] = [];
  let length = 0;
  let failure: unknown;
  try {
    while (length < headBytes) {
      const { value, done } = await iterator.next();
      if (done) break;
      first.push(value);
      length += value.length;
    }
  } catch (error) {
    failure = error;
    if (!(error instanceof InputDamaged) || length === 0) throw error;
  }
  async function* all(): AsyncGenerator<Buffer> {
    try {
      yield* first.splice(0);
      if (failure !== undefined) throw failure;
      for (;;) {
        const { value, done } = await iterator.next();
        if (done) return;
        yield value;
      }
    } finally {
      await iterator.return?.();
    }
  }
  const close = async () => void (await iterator.return?.());
  return { close, head: Buffer.concat(first).subarray(0, headBytes), bytes: all() };
}

/**
 * The bytes of a file as they are, or of standard input.
 *
 * @param path    absolute, or `-`.
 * @param onBytes told of bytes as they are read.
 * @throws {FileUnreadable}
 */
export async function* rawChunks(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
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
