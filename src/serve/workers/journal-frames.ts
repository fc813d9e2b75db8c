/**
 * Frames in which workers hand entries to the journal, over a Unix socket. Integers are little-endian.
 *
 *   request: u32 size of the rest, u32 id, u8 lane, u32 number of entries, u32 size of each entry, their UTF-8
 *   reply:   u32 id, u8 status, f64 the first sequence number
 */

import type { EntryJson } from "../../journal/entry.ts";
import { JournalUnavailableError } from "../../journal/lane-writer.ts";
import { type Lane, lanes } from "../../journal/segment.ts";

const sizeBytes = 4;
const headBytes = 4 + 1 + 4;
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
  readonly entries: readonly Uint8Array[];
}

/** Serializes an append. */
export function appendFrame(id: number, lane: Lane, entries: readonly EntryJson[]): Buffer {
  const sizes = entries.map((entry) => (typeof entry === "string" ? Buffer.byteLength(entry) : entry.length));
  const contentBytes = sizes.reduce((sum, size) => sum + size, 0);
  const rest = headBytes + entries.length * sizeBytes + contentBytes;
  const frame = Buffer.allocUnsafe(sizeBytes + rest);
  frame.writeUInt32LE(rest, 0);
  frame.writeUInt32LE(id, sizeBytes);
  frame.writeUInt8(lanes.indexOf(lane), sizeBytes + 4);
  frame.writeUInt32LE(entries.length, sizeBytes + 5);
  let at = sizeBytes + headBytes;
  for (const size of sizes) at = frame.writeUInt32LE(size, at);
  for (const [index, entry] of entries.entries()) {
    if (typeof entry === "string") frame.write(entry, at);
    else frame.set(entry, at);
    at += sizes[index]!;
  }
  return frame;
}

function parseAppend(frame: Buffer): AppendRequest {
  const count = frame.readUInt32LE(5);
  const entries: Uint8Array[] = [];
  let at = headBytes + count * sizeBytes;
  for (let index = 0; index < count; index++) {
    const end = at + frame.readUInt32LE(headBytes + index * sizeBytes);
    entries.push(frame.subarray(at, end));
    at = end;
  }
  return { id: frame.readUInt32LE(0), lane: lanes[frame.readUInt8(4)]!, entries };
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
  frame.writeUInt8(typeof result === "number" ? durable : statusOf(result), 4);
  frame.writeDoubleLE(typeof result === "number" ? result : 0, 5);
  return frame;
}

function statusOf(error: Error): number {
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
