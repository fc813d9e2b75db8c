/**
 * Frames in which workers send entries to the journal over a Unix socket. Integers are little-endian.
 *
 *    append:  u32 size of the rest, u32 id, u8 lane, u8 digits, u32 number of client requests, u32 number of lines,
 *             u32 size of each line, the lines
 *    reply:   u32 id, u8 status, f64 the first sequence number
 *
 * `digits` is the space in each line for its sequence number, see `prepared-lines.ts`.
 */

import type { EntryJson } from "../../journal/entry.ts";
import { JournalUnavailableError } from "../../journal/lane-writer.ts";
import { PreparedLines, preparedSize, writePrepared } from "../../journal/prepared-lines.ts";
import { type Lane, lanes } from "../../journal/segment.ts";
import type { BufferPool } from "../../lib/buffer-pool.ts";

const sizeBytes = 4;
const headBytes = 4 + 1 + 1 + 4 + 4;
/** Size of a reply. */
export const replyBytes = 4 + 1 + 8;

/** Status of a reply: durable, a `JournalUnavailableError` with reason `status - 1`, or another error. */
const durable = 0;
const failed = 255;
type Reason = JournalUnavailableError["reason"];
const reasons = Object.keys(JournalUnavailableError.reasons) as Reason[];

export interface AppendRequest {
  readonly id: number;
  readonly lane: Lane;
  readonly lines: PreparedLines;
  /** Releases the memory of the lines; call it when they are written or rejected. */
  readonly release: () => void;
}

export interface AppendFrame {
  readonly id: number;
  readonly lane: Lane;
  readonly entries: readonly EntryJson[];
  /** Digits of the sequence numbers that the entries probably get. */
  readonly digits: number;
  /** Number of client requests. */
  readonly requests: number;
}

/** Serializes an append. */
export function appendFrame({ id, lane, entries, digits, requests }: AppendFrame): Buffer {
  let entryBytes = 0;
  for (const entry of entries)
    entryBytes += typeof entry === "string" ? Buffer.byteLength(entry) : entry.length;
  const linesAt = sizeBytes + headBytes + entries.length * sizeBytes;
  const frame = Buffer.allocUnsafe(linesAt + preparedSize(digits, entries.length, entryBytes));
  frame.writeUInt32LE(frame.length - sizeBytes, 0);
  frame.writeUInt32LE(id, sizeBytes);
  frame.writeUInt8(lanes.indexOf(lane), sizeBytes + 4);
  frame.writeUInt8(digits, sizeBytes + 5);
  frame.writeUInt32LE(requests, sizeBytes + 6);
  frame.writeUInt32LE(entries.length, sizeBytes + 10);
  let sizeAt = sizeBytes + headBytes;
  let at = linesAt;
  for (const entry of entries) {
    const end = writePrepared(frame, at, digits, entry);
    sizeAt = frame.writeUInt32LE(end - at, sizeAt);
    at = end;
  }
  return frame;
}

function parseAppend(frame: Buffer, release: () => void): AppendRequest {
  const count = frame.readUInt32LE(10);
  const sizes = new Array<number>(count);
  for (let index = 0; index < count; index++)
    sizes[index] = frame.readUInt32LE(headBytes + index * sizeBytes);
  const block = frame.subarray(headBytes + count * sizeBytes);
  const lines = new PreparedLines(block, sizes, frame.readUInt8(5), frame.readUInt32LE(6));
  return { id: frame.readUInt32LE(0), lane: lanes[frame.readUInt8(4)]!, lines, release };
}

const notPooled = () => undefined;

/**
 * Assembles requests from the chunks of a connection. A request within one chunk keeps the chunk in memory and is not
 * copied. Others are copied into pooled memory: fresh memory takes more time than the copy.
 */
export class AppendReader {
  /** The size of a frame that starts at the end of a chunk, as far as it is known. */
  private readonly size = Buffer.alloc(sizeBytes);
  private sizeLength = 0;
  /** A frame that is not complete, without its size. */
  private frame: Buffer | undefined;
  private frameLength = 0;

  constructor(private readonly buffers: BufferPool) {}

  /** Calls back with every complete request, in order. */
  take(chunk: Buffer, onRequest: (request: AppendRequest) => void): void {
    for (let at = 0; at < chunk.length; ) {
      const whole = this.wholeFrame(chunk, at);
      if (whole !== undefined) {
        at += sizeBytes + whole.length;
        onRequest(parseAppend(whole, notPooled));
        continue;
      }
      at += this.frame === undefined ? this.takeSize(chunk, at) : this.fill(this.frame, chunk, at);
      const { frame } = this;
      if (frame === undefined || this.frameLength < frame.length) continue;
      this.frame = undefined;
      onRequest(parseAppend(frame, () => this.buffers.recycle(frame)));
    }
  }

  /** Releases the start of a frame, the rest of which will not arrive. */
  discard(): void {
    if (this.frame !== undefined) this.buffers.recycle(this.frame);
    this.frame = undefined;
  }

  /** The frame that starts here, without its size, if the chunk has all of it. */
  private wholeFrame(chunk: Buffer, at: number): Buffer | undefined {
    if (this.frame !== undefined || this.sizeLength > 0 || chunk.length - at < sizeBytes) return undefined;
    const start = at + sizeBytes;
    const end = start + chunk.readUInt32LE(at);
    return end > chunk.length ? undefined : chunk.subarray(start, end);
  }

  private takeSize(chunk: Buffer, at: number): number {
    const length = chunk.copy(this.size, this.sizeLength, at);
    this.sizeLength += length;
    if (this.sizeLength === sizeBytes) {
      this.frame = this.buffers.take(this.size.readUInt32LE(0));
      this.frameLength = 0;
      this.sizeLength = 0;
    }
    return length;
  }

  private fill(frame: Buffer, chunk: Buffer, at: number): number {
    const length = chunk.copy(frame, this.frameLength, at);
    this.frameLength += length;
    return length;
  }
}

/** Serializes the result of an append: its first sequence number, or its error. */
export function replyFrame(id: number, result: number | Error): Buffer {
  const frame = Buffer.allocUnsafe(replyBytes);
  frame.writeUInt32LE(id, 0);
  frame.writeUInt8(typeof result === "number" ? durable : getStatus(result), 4);
  frame.writeDoubleLE(typeof result === "number" ? result : 0, 5);
  return frame;
}

function getStatus(error: Error): number {
  const reason = error instanceof JournalUnavailableError ? reasons.indexOf(error.reason) : -1;
  return reason === -1 ? failed : reason + 1;
}

/** Reads the reply at an offset. */
export function parseReply(bytes: Buffer, at: number): { id: number; result: number | Error } {
  const id = bytes.readUInt32LE(at);
  const status = bytes.readUInt8(at + 4);
  if (status === durable) return { id, result: bytes.readDoubleLE(at + 5) };
  const reason = reasons[status - 1];
  const result =
    reason === undefined
      ? new Error("The journal has rejected the events.")
      : new JournalUnavailableError(reason);
  return { id, result };
}
