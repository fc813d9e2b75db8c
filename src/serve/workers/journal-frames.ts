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

function parseAppend(frame: Buffer): AppendRequest {
  const count = frame.readUInt32LE(10);
  const sizes = new Array<number>(count);
  for (let index = 0; index < count; index++)
    sizes[index] = frame.readUInt32LE(headBytes + index * sizeBytes);
  const block = frame.subarray(headBytes + count * sizeBytes);
  const lines = new PreparedLines(block, sizes, frame.readUInt8(5), frame.readUInt32LE(6));
  return { id: frame.readUInt32LE(0), lane: lanes[frame.readUInt8(4)]!, lines };
}

/** Assembles requests from the chunks of a connection. A request keeps its chunk in memory and is not copied. */
export class AppendReader {
  private rest: Buffer = Buffer.alloc(0);
  /** Chunks of a frame that is not complete. */
  private parts: Buffer[] = [];
  private partBytes = 0;
  private wanted = 0;

  /** Calls back with every complete request, in order. */
  take(chunk: Buffer, onRequest: (request: AppendRequest) => void): void {
    if (this.wanted > 0) {
      this.parts.push(chunk);
      this.partBytes += chunk.length;
      // Joined once: a large frame arrives in many chunks.
      if (this.partBytes < this.wanted) return;
      this.rest = Buffer.concat(this.parts);
      this.parts = [];
      this.wanted = 0;
    } else {
      this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    }
    let start = 0;
    while (this.rest.length - start >= sizeBytes) {
      const end = start + sizeBytes + this.rest.readUInt32LE(start);
      if (end > this.rest.length) {
        this.wanted = end - start;
        break;
      }
      onRequest(parseAppend(this.rest.subarray(start + sizeBytes, end)));
      start = end;
    }
    this.rest = this.rest.subarray(start);
    if (this.wanted === 0) return;
    this.parts = [this.rest];
    this.partBytes = this.rest.length;
    this.rest = Buffer.alloc(0);
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
