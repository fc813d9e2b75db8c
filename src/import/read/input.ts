/** The bytes of an import: a file or standard input, decompressed if it is gzip or Zstandard. */

import { createReadStream } from "node:fs";
import type { Transform } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { AppError } from "../../lib/errors.ts";
import { ZstdFrames } from "../../lib/zstd.ts";

/** The file has another type than specified, or cannot be opened. */
export class UnreadableFileError extends AppError {
  readonly code = "file_unreadable";
  override readonly hint: string = "Check the path and --format.";
}

/** The file is readable, but its records have no known format. */
export class UnrecognizedFormatError extends UnreadableFileError {
  override readonly hint = "Name the format with --format, or the fields of an event with --map.";
}

/** The file is a report. */
export class TotalsError extends UnreadableFileError {
  override readonly hint = "Export the events themselves.";
}

/** The file is readable only up to some position. */
export class CorruptInputError extends AppError {
  readonly code = "input_damaged";
  override hint = corruptionHint("imported");

  /** @param isCutOff everything before is as it was written; else it may be corrupt too. */
  constructor(
    message: string,
    readonly isCutOff = true,
  ) {
    super(message);
  }

  /** @param done what has become of the readable part. */
  report(done: string): void {
    this.hint = corruptionHint(done);
  }
}

function corruptionHint(done: string): string {
  return `Everything before the corruption was ${done}. Repair the file, then continue with --resume.`;
}

/** A packed file whose checksum is wrong: no part of it can be trusted. */
export class CorruptFileError extends UnreadableFileError {
  override readonly hint = "Nothing of it was imported. Repair the file, then repeat the import.";
}

/** Small, so that little is lost before the corrupt position of a compressed file. */
const packedChunkBytes = 64 * 1024;
const chunkBytes = 1024 * 1024;
/** Enough bytes to detect the type of a file. */
const headBytes = 64 * 1024;
/** Maximum number of nested compression layers. */
const layersMax = 3;

/** Decompressed bytes. */
export interface DecompressedInput {
  /** The first bytes, or all when there are fewer. */
  head: Buffer;
  /** All bytes. @throws {CorruptInputError} after yielding the bytes before the corruption. */
  bytes: AsyncIterable<Buffer>;
  packing: ("gzip" | "zstd")[];
  /** Discards the unread bytes. */
  close: () => Promise<void>;
}

/** Decompresses gzip and Zstandard. Compression is recognized by the first bytes, whatever the name. */
export async function decompress(name: string, chunks: AsyncIterable<Buffer>): Promise<DecompressedInput> {
  const packing: DecompressedInput["packing"] = [];
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

/** Reads ahead. Corruption inside of the head is reported at its position. */
async function withHead(chunks: AsyncIterable<Buffer>): Promise<Omit<DecompressedInput, "packing">> {
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
    if (!(error instanceof CorruptInputError)) throw error;
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
 * The raw bytes of a file or of standard input.
 *
 * @param path    absolute, or `-`.
 * @param onBytes called with the number of bytes read.
 * @throws {UnreadableFileError}
 */
export async function* rawChunks(path: string, onBytes: (bytes: number) => void): AsyncGenerator<Buffer> {
  const source = path === "-" ? process.stdin : createReadStream(path, { highWaterMark: chunkBytes });
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      onBytes(chunk.length);
      yield chunk;
    }
  } catch (error) {
    throw new UnreadableFileError(`${path} cannot be read (${(error as Error).message}).`);
  }
}

/** Throws for a truncated or missing frame: the decompressor does not detect it. */
async function* wholeFrames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const frames = new ZstdFrames();
  for await (const chunk of chunks) {
    const sound = frames.take(chunk);
    yield chunk.subarray(0, sound);
    if (sound < chunk.length) throw new Error("a frame is missing");
  }
  if (!frames.isAtEnd) throw new Error("unexpected end of file");
}

/** The end or the next part is missing; what was unpacked is whole. */
const cutOffForm = /unexpected end of file|incorrect header check|a frame is missing/;

/** Unlike a pipe, yields everything decompressed before an error. */
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
        : new CorruptInputError(
            `${path} is corrupt behind what could be unpacked (${failure.message}).`,
            cutOffForm.test(failure.message),
          );
  } finally {
    unpacker.destroy();
  }
}
