/**
 * The journal for HTTP workers: the server process, which writes it, serves appends over a Unix socket. A worker sends
 * the appends of one turn of the event loop together, and they are numbered in the order of its calls.
 */

import { rmSync } from "node:fs";
import type { Socket, UnixSocketListener } from "bun";
import type { JournalSink } from "../../ingestion/ports.ts";
import type { EntryJson } from "../../journal/entry.ts";
import type { PreparedSink } from "../../journal/journal.ts";
import { JournalUnavailableError } from "../../journal/lane-writer.ts";
import { digitCount } from "../../journal/prepared-lines.ts";
import type { Lane } from "../../journal/segment.ts";
import { BufferPool } from "../../lib/buffer-pool.ts";
import { listenPrivately } from "../../rpc/server.ts";
import { AppendReader, appendFrame, parseReply, replyBytes, replyFrame } from "./journal-frames.ts";

/** Queues frames for a socket, which it sends together once per turn of the event loop. */
class Outgoing {
  /** Bytes that the socket has not accepted. */
  bytes = 0;
  private frames: Buffer[] = [];
  private isScheduled = false;
  private isBlocked = false;

  constructor(private readonly socket: { write(bytes: Buffer): number }) {}

  send(frame: Buffer): void {
    this.frames.push(frame);
    this.bytes += frame.length;
    if (this.isScheduled || this.isBlocked) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.flush();
    });
  }

  /** The socket accepts bytes again. */
  drained(): void {
    this.isBlocked = false;
    this.flush();
  }

  /** Sends what is queued, as far as the socket accepts it. */
  flush(): void {
    if (this.isBlocked || this.frames.length === 0) return;
    const joined = this.frames.length === 1 ? this.frames[0]! : Buffer.concat(this.frames);
    const written = Math.max(0, this.socket.write(joined));
    this.bytes -= written;
    this.isBlocked = written < joined.length;
    this.frames = this.isBlocked ? [joined.subarray(written)] : [];
  }
}

interface WorkerConnection {
  reader: AppendReader;
  outgoing: Outgoing;
}

/** Limit of the memory that is retained for frames of all workers. */
const retainedBytesMax = 8 * 1024 * 1024;

/** Serves a journal to the workers. */
export class JournalServer {
  private readonly buffers = new BufferPool(retainedBytesMax);
  private listener: UnixSocketListener<WorkerConnection> | undefined;

  constructor(
    private readonly socketName: string,
    private readonly journal: PreparedSink,
  ) {}

  /** Listens in the working directory, which is the data directory; replaces a stale socket. */
  listen(): void {
    this.listener = listenPrivately(this.socketName, () =>
      Bun.listen<WorkerConnection>({
        unix: this.socketName,
        socket: {
          open: (socket) => {
            socket.data = { reader: new AppendReader(this.buffers), outgoing: new Outgoing(socket) };
          },
          close: (socket) => socket.data.reader.discard(),
          data: (socket, chunk) => this.take(socket, chunk),
          drain: (socket) => socket.data.outgoing.drained(),
        },
      }),
    );
  }

  /** Stops listening and removes the socket. */
  stop(): void {
    this.listener?.stop(true);
    rmSync(this.socketName, { force: true });
  }

  private take({ data: { reader, outgoing } }: Socket<WorkerConnection>, chunk: Buffer): void {
    reader.take(chunk, ({ id, lane, lines, release }) => {
      const answer = (result: number | Error) => {
        release();
        outgoing.send(replyFrame(id, result));
      };
      this.journal.append(lane, lines).then(answer, answer);
    });
  }
}

/** Limits of appends that are sent together: an error concerns all of them. A larger append is sent alone. */
const togetherEntriesMax = 1_000;
const togetherBytesMax = 256 * 1024;

/** Appends of one lane that are sent together. */
interface Batch {
  readonly lane: Lane;
  readonly entries: EntryJson[];
  /** Approximate. */
  bytes: number;
  readonly calls: { offset: number; result: PromiseWithResolvers<number> }[];
}

/** The journal of the server process, as a worker sees it. */
export class RemoteJournal implements JournalSink {
  private readonly pending = new Map<number, Batch>();
  private nextId = 1;
  private outgoing: Outgoing | undefined;
  private rest: Buffer = Buffer.alloc(0);
  /** Appends of this turn of the event loop. */
  private batches: Batch[] = [];
  private batchBytes = 0;
  /** Digits of the last known sequence number of each lane. */
  private readonly digits: Record<Lane, number> = { realtime: 1, historical: 1 };

  /** @param queueBytesMax limit of the bytes that wait for the server process; appends above it are rejected. */
  private constructor(private readonly queueBytesMax: number) {}

  /** @param onClosed called when the server process has closed the connection. @throws {Error} nothing listens. */
  static async connect(
    socketName: string,
    { queueBytesMax, onClosed }: { queueBytesMax: number; onClosed: () => void },
  ): Promise<RemoteJournal> {
    const journal = new RemoteJournal(queueBytesMax);
    const socket = await Bun.connect({
      unix: socketName,
      socket: {
        data: (_, chunk) => journal.take(chunk),
        drain: () => journal.outgoing?.drained(),
        close: () => {
          journal.fail();
          onClosed();
        },
      },
    });
    journal.outgoing = new Outgoing(socket);
    return journal;
  }

  /** Resolves with the first sequence number when all entries are durable. @throws {JournalUnavailableError} */
  async append(lane: Lane, entries: readonly EntryJson[]): Promise<number> {
    const { outgoing } = this;
    if (outgoing === undefined) throw new JournalUnavailableError("closed");
    if (outgoing.bytes + this.batchBytes > this.queueBytesMax)
      throw new JournalUnavailableError("overloaded");
    const bytes = entries.reduce((sum, { length }) => sum + length, 0);
    const batch = this.batchFor(lane, entries.length, bytes);
    const result = Promise.withResolvers<number>();
    batch.calls.push({ offset: batch.entries.length, result });
    for (const entry of entries) batch.entries.push(entry);
    batch.bytes += bytes;
    this.batchBytes += bytes;
    return await result.promise;
  }

  private batchFor(lane: Lane, count: number, bytes: number): Batch {
    const last = this.batches.findLast((batch) => batch.lane === lane);
    const fits =
      last !== undefined &&
      last.entries.length + count <= togetherEntriesMax &&
      last.bytes + bytes <= togetherBytesMax;
    if (fits) return last;
    if (this.batches.length === 0) setImmediate(() => this.send());
    const batch: Batch = { lane, entries: [], bytes: 0, calls: [] };
    this.batches.push(batch);
    return batch;
  }

  private send(): void {
    const { batches, outgoing } = this;
    this.batches = [];
    this.batchBytes = 0;
    for (const batch of batches) {
      if (outgoing === undefined) {
        reject(batch, new JournalUnavailableError("closed"));
        continue;
      }
      const id = this.nextId;
      this.nextId = (id + 1) % 2 ** 32;
      this.pending.set(id, batch);
      const { lane, entries, calls } = batch;
      outgoing.send(appendFrame({ id, lane, entries, digits: this.digits[lane], requests: calls.length }));
    }
    outgoing?.flush();
  }

  private take(chunk: Buffer): void {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    for (; bytes.length - at >= replyBytes; at += replyBytes) {
      const { id, result } = parseReply(bytes, at);
      const batch = this.pending.get(id)!;
      this.pending.delete(id);
      if (typeof result !== "number") {
        reject(batch, result);
        continue;
      }
      this.digits[batch.lane] = digitCount(result + batch.entries.length);
      for (const call of batch.calls) call.result.resolve(result + call.offset);
    }
    this.rest = bytes.subarray(at);
  }

  private fail(): void {
    this.outgoing = undefined;
    for (const batch of this.pending.values()) reject(batch, new JournalUnavailableError("closed"));
    this.pending.clear();
  }
}

function reject({ calls }: Batch, error: Error): void {
  for (const { result } of calls) result.reject(error);
}
