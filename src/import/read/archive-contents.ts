/** The contents of a file: itself, decompressed, or the files of an archive (zip, tar), each decompressed. */

import { close, open, read, statSync } from "node:fs";
import { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import { createTarDecoder } from "modern-tar";
import yauzl from "yauzl";
import { compareNames } from "./file-order.ts";
import {
  CorruptInputError,
  type DecompressedInput,
  decompress,
  rawChunks,
  UnreadableFileError,
} from "./input.ts";
import { getInputName, type PipedInput } from "./piped-input.ts";
import { spooled } from "./spool-file.ts";

/*
 * Reads a zip archive in blocks. The archive's library reads headers one by one, which takes most of the time if there
 * are many small members.
 */

const blockBytes = 64 * 1024;
/** One block of the directory, and of the members. */
const blocksMax = 2;

interface Block {
  position: number;
  bytes: Buffer;
}

class BufferedReader extends yauzl.RandomAccessReader {
  /** Newest first. */
  private blocks: Block[] = [];

  private constructor(private readonly handle: number) {
    super();
  }

  static async open(path: string): Promise<BufferedReader> {
    return new BufferedReader(
      await new Promise((resolve, reject) => {
        open(path, "r", (error, handle) => (error ? reject(error) : resolve(handle)));
      }),
    );
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.bytesAt(position, (error, bytes) => {
      if (error !== null) return callback(error);
      if (bytes.length === 0) return callback(new Error("unexpected end of file"));
      const copied = bytes.copy(buffer, offset, 0, length);
      if (copied === length) return callback(null);
      this.read(buffer, offset + copied, length - copied, position + copied, callback);
    });
  }

  override createReadStream({ start, end }: { start: number; end: number }): Readable {
    const next = (size: number, done: (error: Error | null, bytes: Buffer) => void) =>
      this.bytesAt(start, (error, bytes) => done(error, bytes.subarray(0, Math.min(size, end - start))));
    return new Readable({
      read() {
        if (start >= end) {
          this.push(null);
          return;
        }
        next(blockBytes, (error, bytes) => {
          if (error !== null || bytes.length === 0) {
            this.destroy(error ?? new Error("unexpected end of file"));
            return;
          }
          start += bytes.length;
          this.push(bytes);
        });
      },
    });
  }

  override close(callback: (error: Error | null) => void): void {
    this.blocks = [];
    close(this.handle, (error) => callback(error ?? null));
  }

  /** The bytes from a position up to the end of their block; none at the end of the file. */
  private bytesAt(position: number, callback: (error: Error | null, bytes: Buffer) => void): void {
    const found = this.blocks.find(
      (block) => position >= block.position && position < block.position + block.bytes.length,
    );
    if (found !== undefined) {
      if (found !== this.blocks[0]) this.blocks = [found, ...this.blocks.filter((block) => block !== found)];
      callback(null, found.bytes.subarray(position - found.position));
      return;
    }
    const bytes = Buffer.allocUnsafeSlow(blockBytes);
    read(this.handle, bytes, 0, blockBytes, position, (error, length) => {
      if (error) return callback(error, bytes.subarray(0, 0));
      const block = { position, bytes: bytes.subarray(0, length) };
      this.blocks = [block, ...this.blocks].slice(0, blocksMax);
      callback(null, block.bytes);
    });
  }
}

/** One sequence of records. */
export interface Content extends DecompressedInput {
  /** The file's path, or `Standard input`; for a file in an archive `ARCHIVE/NAME`. */
  name: string;
  /** Of a file in an archive: `/NAME`; else empty. */
  inside: string;
  /** Type of the archive that contains it. */
  archive: "zip" | "tar" | undefined;
  /** Path for random access, if it is a plain file. */
  path: string | undefined;
}

export interface ContentOptions {
  /** Called with the number of file bytes read. */
  onBytes: (bytes: number) => void;
  /** For temporary copies of input that needs random access. */
  workFolder: string;
  /** Required for a path that can be read only once. */
  piped?: PipedInput | undefined;
}

const entriesMax = 100_000;

/**
 * The contents of a file, one after the other: of a zip by name, of a tar in file order. Each must be read before the
 * next.
 *
 * @param path absolute, or `-` for standard input.
 * @throws {UnreadableFileError} @throws {CorruptInputError}
 */
export async function* getContents(path: string, options: ContentOptions): AsyncGenerator<Content> {
  const { piped, onBytes, workFolder } = options;
  const name = getInputName(path);
  const peeled = await decompress(name, piped?.chunks() ?? rawChunks(path, onBytes));
  const kind = getArchive(peeled.head);
  const isFile = peeled.packing.length === 0 && piped === undefined;
  if (kind === "tar") yield* tarContents(name, peeled.bytes);
  else if (kind === undefined)
    yield { ...peeled, name, inside: "", archive: undefined, path: isFile ? path : undefined };
  else if (isFile) {
    await peeled.close();
    yield* zipContents(name, path, onBytes);
  } else yield* spooled(peeled.bytes, workFolder, (copy) => zipContents(name, copy, () => {}));
}

function getArchive(head: Buffer): "zip" | "tar" | undefined {
  const magic = head.length >= 4 ? head.readUInt32BE() : 0;
  if (magic === 0x504b0304 || magic === 0x504b0506) return "zip";
  return head.toString("latin1", 257, 262) === "ustar" ? "tar" : undefined;
}

/** In every document of Excel and other Office programs. */
const officeMark = "[Content_Types].xml";

async function* zipContents(
  name: string,
  path: string,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Content> {
  const unreadable = (error: unknown) =>
    new UnreadableFileError(`${name} is no zip archive that can be read (${(error as Error).message}).`);
  const reader = await BufferedReader.open(path);
  const options = { autoClose: false };
  const zip = await yauzl
    .fromRandomAccessReaderPromise(reader, statSync(path).size, options)
    .catch((error: unknown) => {
      reader.close(() => {});
      throw unreadable(error);
    });
  try {
    if (zip.entryCount > entriesMax)
      throw new UnreadableFileError(`${name} holds more than ${entriesMax} files.`);
    const entries: yauzl.Entry[] = [];
    try {
      for await (const entry of zip.eachEntry()) if (isWanted(entry.fileName)) entries.push(entry);
    } catch (error) {
      throw unreadable(error);
    }
    if (doOverlap(entries)) throw new UnreadableFileError(`${name} is a zip archive whose members overlap.`);
    if (entries.some(({ fileName }) => fileName === officeMark))
      throw new UnreadableFileError(`${name} is an Office document: save its sheet as CSV first.`);
    entries.sort((a, b) => compareNames(a.fileName, b.fileName));
    for (const entry of entries) {
      const member = `${name}/${entry.fileName}`;
      if (entry.isEncrypted()) throw new UnreadableFileError(`${member} is encrypted.`);
      const stream = await zip.openReadStreamPromise(entry).catch((error: unknown) => {
        throw unreadable(error);
      });
      const share = entry.compressedSize / Math.max(1, entry.uncompressedSize);
      yield await getContent(
        { name: member, inside: member.slice(name.length), archive: "zip" },
        withChecksum(
          member,
          entry.crc32,
          entryBytes(member, stream, (bytes) => onBytes(bytes * share)),
        ),
      );
      stream.destroy();
    }
  } finally {
    zip.close();
  }
}

/** Of the header before a member, without its name and extra fields. */
const localHeaderBytes = 30;

/**
 * Whether members share bytes: a small archive could be unpacked to any size (contract, import 1.10). Regular programs
 * write members one after the other.
 */
function doOverlap(entries: readonly yauzl.Entry[]): boolean {
  const positions = entries
    .map(({ relativeOffsetOfLocalHeader: start, compressedSize }) => ({
      start,
      end: start + localHeaderBytes + compressedSize,
    }))
    .sort((a, b) => a.start - b.start);
  return positions.some(({ start }, at) => at > 0 && start < positions[at - 1]!.end);
}

async function* tarContents(name: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<Content> {
  const entries = Readable.toWeb(
    Readable.from(bytes, { objectMode: false }),
  ) as unknown as ReadableStream<Uint8Array>;
  let count = 0;
  try {
    for await (const { header, body } of entries.pipeThrough(createTarDecoder())) {
      const stream = Readable.fromWeb(body as never);
      if ((header.type === "file" || header.type === undefined) && isWanted(header.name)) {
        count += 1;
        if (count > entriesMax) throw new UnreadableFileError(`${name} holds more than ${entriesMax} files.`);
        const member = `${name}/${header.name}`;
        yield await getContent(
          { name: member, inside: member.slice(name.length), archive: "tar" },
          withLength(
            member,
            header.size,
            entryBytes(member, stream, () => {}),
          ),
        );
      }
      // The next member comes after the unread rest.
      for await (const _ of stream);
    }
  } catch (error) {
    if (error instanceof UnreadableFileError || error instanceof CorruptInputError) throw error;
    throw new CorruptInputError(`${name} is corrupt (${(error as Error).message}).`, false);
  }
}

/** Excludes folders and metadata files of operating systems. */
function isWanted(name: string): boolean {
  const parts = name.split("/");
  return !name.endsWith("/") && !parts.some((part) => part.startsWith(".") || part === "__MACOSX");
}

async function* entryBytes(
  name: string,
  stream: Readable,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      onBytes(chunk.length);
      yield Buffer.from(chunk);
    }
  } catch (error) {
    if (error instanceof CorruptInputError) throw error;
    throw new CorruptInputError(`${name} is corrupt (${(error as Error).message}).`, false);
  }
}

async function* withChecksum(
  name: string,
  expected: number,
  bytes: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let checksum = 0;
  for await (const chunk of bytes) {
    checksum = crc32(chunk, checksum);
    yield chunk;
  }
  if (checksum !== expected) throw new CorruptInputError(`${name} is corrupt (wrong checksum).`, false);
}

async function* withLength(
  name: string,
  expected: number,
  bytes: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of bytes) {
    length += chunk.length;
    yield chunk;
  }
  if (length < expected) throw new CorruptInputError(`${name} is cut off.`);
}

async function getContent(
  member: Pick<Content, "name" | "inside" | "archive">,
  bytes: AsyncIterable<Buffer>,
): Promise<Content> {
  const { name } = member;
  const peeled = await decompress(name, bytes);
  if (getArchive(peeled.head) !== undefined)
    throw new UnreadableFileError(`${name} is an archive inside of an archive: unpack the outer one first.`);
  return { ...peeled, ...member, path: undefined };
}
