/** Converts archive files to columns: on the calling thread, or on a dedicated thread, which ends when idle. */

import { firstLine } from "../lib/errors.ts";
import { startThread } from "../lib/operating-system.ts";
import { zstdCompressed } from "../lib/zstd.ts";
import { toDisplayString } from "./archive.ts";
import { encodeColumnar } from "./archive-columnar.ts";

export interface ColumnarConverter {
  /** @returns the columnar form of a file of rows; undefined if it has to stay as it is */
  pack(path: string): Promise<Uint8Array | undefined>;
  /** Called when the queue is empty. */
  rest(): void;
}

/** Half the size of rows at level 1, for ten times the CPU time. */
const columnarLevel = 6;

/** Converts a file on this thread, in small steps; undefined for a corrupt file. */
export async function packColumnar(path: string): Promise<Uint8Array | undefined> {
  const read = await toDisplayString(path).catch(() => undefined);
  // Corrupt files stay in rows: the columnar form would hide which entries are missing.
  if (read === undefined || !read.isWhole) return undefined;
  const chunks: Buffer[] = [];
  for (const chunk of encodeColumnar(read.text)) {
    chunks.push(chunk);
    await new Promise(setImmediate);
  }
  return await zstdCompressed(Buffer.concat(chunks), columnarLevel);
}

/** Reply of the thread: the columnar form, or its error. */
export type PackedFile = { readonly packed: Uint8Array | undefined } | { readonly error: string };

/** Idle time after which the thread ends and frees its memory. */
const idleMs = 10_000;
/** A file takes about a second; a thread that takes longer than this is replaced. */
const packMsMax = 300_000;

/** Converts on a dedicated thread. */
export class ColumnarThread implements ColumnarConverter {
  private thread: Worker | undefined;
  private idleTimer: ReturnType<typeof setTimeout> | undefined;

  /** @param timeoutMs limit for one file; default: five minutes */
  constructor(private readonly timeoutMs = packMsMax) {}

  /** One file at a time. @throws {Error} the conversion failed */
  async pack(path: string): Promise<Uint8Array | undefined> {
    clearTimeout(this.idleTimer);
    this.thread ??= startThread("src/journal/columnar-thread.ts");
    const { thread } = this;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const reply = await new Promise<PackedFile>((resolve) => {
      timer = setTimeout(() => resolve({ error: "It took too long." }), this.timeoutMs);
      thread.onmessage = ({ data }: MessageEvent<PackedFile>) => resolve(data);
      thread.onerror = ({ message }) => resolve({ error: message });
      thread.postMessage(path);
    });
    clearTimeout(timer);
    if ("packed" in reply) return reply.packed;
    this.end();
    throw new Error(`failed to convert ${path} to columns: ${firstLine(reply.error)}`);
  }

  rest(): void {
    if (this.thread === undefined) return;
    clearTimeout(this.idleTimer);
    this.idleTimer = setTimeout(() => this.end(), idleMs);
    this.idleTimer.unref();
  }

  private end(): void {
    this.thread?.terminate();
    this.thread = undefined;
  }
}
