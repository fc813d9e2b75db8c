/** The contents of a file: itself, decompressed, or the files of an archive (zip, tar), each decompressed. */

import { createWriteStream, mkdirSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { crc32 } from "node:zlib";
import { createTarDecoder } from "modern-tar";
import yauzl from "yauzl";
import { BufferedReader } from "./buffered-reader.ts";
import { compareNames } from "./file-order.ts";
import {
  CorruptInputError,
  type DecompressedInput,
  decompress,
  rawChunks,
  UnreadableFileError,
} from "./input.ts";

/** One sequence of records. */
export interface Content extends DecompressedInput {
  /** The file's path; for a file in an archive `ARCHIVE/NAME`. */
  name: string;
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
  /** Required for the path `-`. */
  standardInput?: StandardInput | undefined;
}

/** Standard input: it can be read only once, but an archive is copied and can be read again. */
export interface StandardInput extends Disposable {
  isArchive: boolean;
  contents: () => AsyncGenerator<Content>;
}

/** @throws {UnreadableFileError} @throws {CorruptInputError} */
export async function openStandardInput({ onBytes, workFolder }: ContentOptions): Promise<StandardInput> {
  const peeled = await decompress("-", rawChunks("-", onBytes));
  const kind = getArchive(peeled.head);
  if (kind === undefined) {
    async function* content(): AsyncGenerator<Content> {
      yield { ...peeled, name: "-", archive: undefined, path: undefined };
    }
    return { isArchive: false, contents: content, [Symbol.dispose]: () => {} };
  }
  let damage: CorruptInputError | undefined;
  async function* readable(): AsyncGenerator<Buffer> {
    try {
      yield* peeled.bytes;
    } catch (error) {
      if (!(error instanceof CorruptInputError)) throw error;
      damage = error;
    }
  }
  const copy = await spool(readable(), workFolder);
  async function* contents(): AsyncGenerator<Content> {
    if (kind === "zip") yield* zipContents("-", copy, () => {});
    else
      yield* tarContents(
        "-",
        rawChunks(copy, () => {}),
      );
    if (damage !== undefined) throw damage;
  }
  return { isArchive: true, contents, [Symbol.dispose]: () => rmSync(copy, { force: true }) };
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
  if (path === "-") {
    yield* options.standardInput!.contents();
    return;
  }
  const peeled = await decompress(path, rawChunks(path, options.onBytes));
  const kind = getArchive(peeled.head);
  const isFile = peeled.packing.length === 0 && statSync(path).isFile();
  if (kind === "tar") yield* tarContents(path, peeled.bytes);
  else if (kind === undefined)
    yield { ...peeled, name: path, archive: undefined, path: isFile ? path : undefined };
  else if (isFile) {
    await peeled.close();
    yield* zipContents(path, path, options.onBytes);
  } else yield* spooled(peeled.bytes, options.workFolder, (copy) => zipContents(path, copy, () => {}));
}

function getArchive(head: Buffer): "zip" | "tar" | undefined {
  const magic = head.length >= 4 ? head.readUInt32BE() : 0;
  if (magic === 0x504b0304 || magic === 0x504b0506) return "zip";
  return head.toString("latin1", 257, 262) === "ustar" ? "tar" : undefined;
}

/** Like `spool`, for the time of the use. */
export async function* spooled<Item>(
  bytes: AsyncIterable<Buffer>,
  workFolder: string,
  use: (path: string) => AsyncIterable<Item>,
): AsyncGenerator<Item> {
  const copy = await spool(bytes, workFolder);
  try {
    yield* use(copy);
  } finally {
    rmSync(copy, { force: true });
  }
}

/**
 * Writes bytes to a temporary file, which may take at most half of the free disk space.
 *
 * @throws {UnreadableFileError} it would be too large.
 */
async function spool(bytes: AsyncIterable<Buffer>, workFolder: string): Promise<string> {
  mkdirSync(workFolder, { recursive: true, mode: 0o700 });
  removeAbandoned(workFolder);
  const copy = join(workFolder, `unpacked-${process.pid}-${crypto.randomUUID()}`);
  const { bavail, bsize } = statfsSync(workFolder);
  const bytesMax = (bavail * bsize) / 2;
  async function* bounded(): AsyncGenerator<Buffer> {
    let written = 0;
    for await (const chunk of bytes) {
      written += chunk.length;
      if (written > bytesMax)
        throw new UnreadableFileError("Unpacked it takes more than half of the free disk.");
      yield chunk;
    }
  }
  try {
    await pipeline(bounded, createWriteStream(copy, { mode: 0o600 }));
    return copy;
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
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
    entries.sort((one, other) => compareNames(one.fileName, other.fileName));
    for (const entry of entries) {
      const inside = `${name}/${entry.fileName}`;
      if (entry.isEncrypted()) throw new UnreadableFileError(`${inside} is encrypted.`);
      const stream = await zip.openReadStreamPromise(entry).catch((error: unknown) => {
        throw unreadable(error);
      });
      const share = entry.compressedSize / Math.max(1, entry.uncompressedSize);
      yield await getContent(
        inside,
        "zip",
        withChecksum(
          inside,
          entry.crc32,
          entryBytes(inside, stream, (bytes) => onBytes(bytes * share)),
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
    .sort((one, other) => one.start - other.start);
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
        const inside = `${name}/${header.name}`;
        yield await getContent(
          inside,
          "tar",
          withLength(
            inside,
            header.size,
            entryBytes(inside, stream, () => {}),
          ),
        );
      }
      // The next member comes after the unread rest.
      for await (const _ of stream);
    }
  } catch (error) {
    if (error instanceof UnreadableFileError || error instanceof CorruptInputError) throw error;
    throw new CorruptInputError(`${name} is damaged (${(error as Error).message}).`, false);
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
    throw new CorruptInputError(`${name} is damaged (${(error as Error).message}).`, false);
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
  if (checksum !== expected) throw new CorruptInputError(`${name} is damaged (wrong checksum).`, false);
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
  name: string,
  archive: "zip" | "tar",
  bytes: AsyncIterable<Buffer>,
): Promise<Content> {
  const peeled = await decompress(name, bytes);
  if (getArchive(peeled.head) !== undefined)
    throw new UnreadableFileError(`${name} is an archive inside of an archive: unpack the outer one first.`);
  return { ...peeled, name, archive, path: undefined };
}
