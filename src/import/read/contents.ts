/** What is in a file: itself, unpacked, or the files of an archive (zip, tar), each unpacked. */

import { createWriteStream, mkdirSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createTarDecoder } from "modern-tar";
import yauzl from "yauzl";
import { FileUnreadable, InputDamaged, type Peeled, peel, rawChunks } from "./input.ts";

/** One run of records. */
export interface Content extends Peeled {
  /** The file's path; of a file in an archive `ARCHIVE/NAME`. */
  name: string;
  /** Of the archive that it is in. */
  archive: "zip" | "tar" | undefined;
  /** Where it can be read from any place, when it is a file as it stands. */
  path: string | undefined;
}

export interface ContentOptions {
  /** Told of bytes of the file that have been read. */
  onBytes: (bytes: number) => void;
  /** For what has to be read from any place and is no file yet. */
  workFolder: string;
}

const entriesMax = 100_000;
const byName = new Intl.Collator("en", { numeric: true });

/**
 * The contents of a file, one after the other: of a zip by name, of a tar as they come. Each has to be read before the next.
 *
 * @param path absolute, or `-` for standard input.
 * @throws {FileUnreadable} @throws {InputDamaged}
 */
export async function* contentsOf(path: string, options: ContentOptions): AsyncGenerator<Content> {
  const peeled = await peel(path, rawChunks(path, options.onBytes));
  const kind = archiveOf(peeled.head);
  const isFile = path !== "-" && peeled.packing.length === 0 && statSync(path).isFile();
  if (kind === "tar") yield* tarContents(path, peeled.bytes);
  else if (kind === undefined)
    yield { ...peeled, name: path, archive: undefined, path: isFile ? path : undefined };
  else if (isFile) {
    await peeled.close();
    yield* zipContents(path, path, options.onBytes);
  } else yield* spooled(peeled.bytes, options.workFolder, (copy) => zipContents(path, copy, () => {}));
}

function archiveOf(head: Buffer): "zip" | "tar" | undefined {
  const magic = head.length >= 4 ? head.readUInt32BE() : 0;
  if (magic === 0x504b0304 || magic === 0x504b0506) return "zip";
  return head.toString("latin1", 257, 262) === "ustar" ? "tar" : undefined;
}

/**
 * Writes bytes to a file for as long as it is needed; of the disk it takes half of what is free at the most.
 *
 * @throws {FileUnreadable} it would be too large.
 */
export async function* spooled<Item>(
  bytes: AsyncIterable<Buffer>,
  workFolder: string,
  use: (path: string) => AsyncIterable<Item>,
): AsyncGenerator<Item> {
  mkdirSync(workFolder, { recursive: true, mode: 0o700 });
  removeAbandoned(workFolder);
  const copy = join(workFolder, `unpacked-${process.pid}-${crypto.randomUUID()}`);
  const { bavail, bsize } = statfsSync(workFolder);
  const bytesMax = (bavail * bsize) / 2;
  async function* bounded(): AsyncGenerator<Buffer> {
    let written = 0;
    for await (const chunk of bytes) {
      written += chunk.length;
      if (written > bytesMax) throw new FileUnreadable("Unpacked it takes more than half of the free disk.");
      yield chunk;
    }
  }
  try {
    await pipeline(bounded, createWriteStream(copy, { mode: 0o600 }));
    yield* use(copy);
  } finally {
    rmSync(copy, { force: true });
  }
}

/** Copies that processes have left which were killed, or ended in the middle: they may be as large as the disk is. */
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

async function* zipContents(
  name: string,
  path: string,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Content> {
  const unreadable = (error: unknown) =>
    new FileUnreadable(`${name} is no zip archive that can be read (${(error as Error).message}).`);
  const zip = await yauzl.openPromise(path, { autoClose: false }).catch((error: unknown) => {
    throw unreadable(error);
  });
  try {
    if (zip.entryCount > entriesMax) throw new FileUnreadable(`${name} holds more than ${entriesMax} files.`);
    const entries: yauzl.Entry[] = [];
    try {
      for await (const entry of zip.eachEntry()) if (isWanted(entry.fileName)) entries.push(entry);
    } catch (error) {
      throw unreadable(error);
    }
    if (doOverlap(entries)) throw new FileUnreadable(`${name} is a zip archive whose members overlap.`);
    entries.sort((one, other) => byName.compare(one.fileName, other.fileName));
    for (const entry of entries) {
      const inside = `${name}/${entry.fileName}`;
      if (entry.isEncrypted()) throw new FileUnreadable(`${inside} is encrypted.`);
      const stream = await zip.openReadStreamPromise(entry).catch((error: unknown) => {
        throw unreadable(error);
      });
      const share = entry.compressedSize / Math.max(1, entry.uncompressedSize);
      yield await contentOf(
        inside,
        "zip",
        entryBytes(inside, stream, (bytes) => onBytes(bytes * share)),
      );
      stream.destroy();
    }
  } finally {
    zip.close();
  }
}

/** Of the header before a member, without its name and what else is there. */
const localHeaderBytes = 30;

/**
 * Whether members share bytes: a small archive would be unpacked to any size (contract, import 1.10). Every program that
 * writes archives puts one member behind the other.
 */
function doOverlap(entries: readonly yauzl.Entry[]): boolean {
  const places = entries
    .map(({ relativeOffsetOfLocalHeader: start, compressedSize }) => ({
      start,
      end: start + localHeaderBytes + compressedSize,
    }))
    .sort((one, other) => one.start - other.start);
  return places.some(({ start }, at) => at > 0 && start < places[at - 1]!.end);
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
        if (count > entriesMax) throw new FileUnreadable(`${name} holds more than ${entriesMax} files.`);
        const inside = `${name}/${header.name}`;
        yield await contentOf(
          inside,
          "tar",
          entryBytes(inside, stream, () => {}),
        );
      }
      // The next one is behind what nobody has read.
      for await (const _ of stream);
    }
  } catch (error) {
    if (error instanceof FileUnreadable || error instanceof InputDamaged) throw error;
    throw new InputDamaged(`${name} is damaged (${(error as Error).message}).`);
  }
}

/** Neither folders nor what systems put beside files. */
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
    throw new InputDamaged(`${name} is damaged (${(error as Error).message}).`);
  }
}

async function contentOf(
  name: string,
  archive: "zip" | "tar",
  bytes: AsyncIterable<Buffer>,
): Promise<Content> {
  const peeled = await peel(name, bytes);
  if (archiveOf(peeled.head) !== undefined)
    throw new FileUnreadable(`${name} is an archive inside of an archive: unpack the outer one first.`);
  return { ...peeled, name, archive, path: undefined };
}
