/**
 * The journal in PostgreSQL: entries acknowledged by all nodes. The waiting entries of a node become one compressed
 * block of a lane, numbered from a sequence by the statement that stores it: a request that is acknowledged before
 * another one is sent has the lower numbers. A commit whose response is lost is retried as the same block of the node,
 * so each block is stored exactly once.
 */

import type { EntryJson } from "../journal/entry.ts";
import type { Admission, JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import { type Postgres, PostgresUnreachableError } from "./connection.ts";
import { returnedName } from "./layout.ts";
import { assertNodeMayWrite } from "./write-check.ts";

export interface PostgresJournalOptions {
  /** Identifies this node in the journal. */
  node: string;
  /** Maximum bytes waiting for PostgreSQL before new entries are rejected. */
  queueBytesMax: number;
  /** The last applied entry of each lane; default: none. */
  applied?: () => Record<Lane, number>;
  onRejected?: (reason: JournalUnavailableError["reason"], lane: Lane) => void;
  onFailure?: (error: unknown, lane: Lane) => void;
}

/** Maximum bytes per block, unless a single request is larger. */
const blockBytesMax = 8 * 1024 * 1024;
/** Larger blocks are compressed on another thread. */
const syncBytesMax = 64 * 1024;
/** How long a block is retried before its requests are rejected: the time a standby takes to be promoted. */
const triesMs = 5_000;
/** Minimum timeout per attempt. */
const tryMs = 1_000;
/** While writes fail, one new request per interval is tried; the others are rejected immediately. */
const checkIntervalMs = 1_000;
/** Share of the time that counting the waiting entries may take: a large backlog has many blocks. */
const countingShare = 0.05;
/** Readiness reports a failed block for this long, so that a mix of failures and successes is not ready. */
const failingMs = 5_000;
const compression = { level: 1 } as const;

interface Waiting {
  entries: readonly EntryJson[];
  bytes: number;
  resolve: (first: number) => void;
  reject: (error: Error) => void;
}

/** `admission` reports 0 bytes because disk space is up to PostgreSQL. */
export class PostgresJournal implements JournalPort {
  private readonly writers: Record<Lane, BlockWriter>;
  private readonly checkTimer: ReturnType<typeof setInterval>;
  private countTimer: ReturnType<typeof setTimeout> | undefined;
  private isClosed = false;

  constructor(
    private readonly postgres: Postgres,
    private readonly options: PostgresJournalOptions,
  ) {
    this.writers = {
      realtime: new BlockWriter("realtime", postgres, options),
      historical: new BlockWriter("historical", postgres, options),
    };
    this.checkTimer = setInterval(() => void this.check(), checkIntervalMs);
    void this.check();
    void this.count();
  }

  append(lane: Lane, entries: readonly EntryJson[]): Promise<number> {
    return this.writers[lane].append(entries);
  }

  admission(): Admission {
    const isFailing = lanes.some((lane) => this.writers[lane].hasFailedLately);
    const problem = isFailing ? "PostgreSQL cannot be written to." : null;
    return { isOpen: !isFailing, isFailing, problem, freeBytes: 0, neededBytes: 0, totalBytes: 0 };
  }

  state() {
    return lanes.map((lane) => {
      const { lastSeq, waitingEntries, durableCount: durable, queuedBytes } = this.writers[lane];
      return { lane, lastSeq, waitingEntries, durable, queuedBytes };
    });
  }

  async seal(): Promise<void> {
    // The loading node polls for blocks.
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.checkTimer);
    clearTimeout(this.countTimer);
    await Promise.all(lanes.map((lane) => this.writers[lane].close()));
  }

  /** Updates the last number of each lane: other nodes append as well. */
  private async check(): Promise<void> {
    try {
      const rows = await this.postgres.run(
        (sql) =>
          sql`SELECT lane, last_seq, current_setting('transaction_read_only') = 'off' AS writable FROM flagkeep.acknowledged`,
      );
      for (const { lane, last_seq, writable } of rows) {
        const writer = this.writers[lane as Lane];
        writer.recordLast(Number(last_seq));
        if (writable === true) writer.recordWritable();
      }
    } catch {
      // The next append reports the error.
    }
  }

  /** Updates the number of waiting entries, which the gaps between numbers do not tell. */
  private async count(): Promise<void> {
    const startedAt = performance.now();
    try {
      const { realtime, historical } = this.options.applied?.() ?? { realtime: 0, historical: 0 };
      const rows = await this.postgres.run(
        (sql) => sql`SELECT lane, sum(entries) AS entries FROM flagkeep.journal
          WHERE (lane = 'realtime' AND first_seq > ${realtime}) OR (lane = 'historical' AND first_seq > ${historical})
          GROUP BY lane`,
      );
      for (const lane of lanes)
        this.writers[lane].waitingEntries = Number(rows.find((row) => row.lane === lane)?.entries ?? 0);
    } catch {
      // The next append reports the error.
    }
    const pauseMs = Math.max(checkIntervalMs, (performance.now() - startedAt) / countingShare);
    if (!this.isClosed) this.countTimer = setTimeout(() => void this.count(), pauseMs);
  }
}

class BlockWriter {
  lastSeq = 0;
  /** Entries of all nodes that are not applied. */
  waitingEntries = 0;
  /** Entries made durable by this node. */
  durableCount = 0;
  queuedBytes = 0;
  /** The last write failed. */
  private isUnavailable = false;
  private failedAt = Number.NEGATIVE_INFINITY;
  private queue: Waiting[] = [];
  private running: Promise<void> | undefined;
  private isClosed = false;
  /** Last block number of this node in the lane; undefined if unknown. */
  private block: number | undefined;
  private checkedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly lane: Lane,
    private readonly postgres: Postgres,
    private readonly options: PostgresJournalOptions,
  ) {}

  append(entries: readonly EntryJson[]): Promise<number> {
    const rejection = this.rejection();
    if (rejection !== undefined) {
      this.options.onRejected?.(rejection, this.lane);
      return Promise.reject(new JournalUnavailableError(rejection));
    }
    const bytes = entries.reduce((sum, entry) => sum + entry.length + 1, 0);
    this.queuedBytes += bytes;
    return new Promise((resolve, reject) => {
      this.queue.push({ entries, bytes, resolve, reject });
      this.running ??= this.run();
    });
  }

  recordLast(seq: number): void {
    this.lastSeq = Math.max(this.lastSeq, seq);
  }

  recordWritable(): void {
    this.isUnavailable = false;
  }

  get hasFailedLately(): boolean {
    return this.isUnavailable || performance.now() - this.failedAt < failingMs;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
  }

  private rejection(): JournalUnavailableError["reason"] | undefined {
    if (this.isClosed) return "closed";
    if (this.queuedBytes > this.options.queueBytesMax) return "overloaded";
    if (!this.isUnavailable || performance.now() - this.checkedAt > checkIntervalMs) {
      this.checkedAt = performance.now();
      return undefined;
    }
    return "write_failed";
  }

  private async run(): Promise<void> {
    // Wait one tick, so that all pending requests share the first commit.
    await new Promise(setImmediate);
    while (this.queue.length > 0) await this.writeBlock(this.takeGroup());
    this.running = undefined;
  }

  private takeGroup(): Waiting[] {
    let count = 0;
    for (let bytes = 0; count < this.queue.length; count++) {
      bytes += this.queue[count]!.bytes;
      if (count > 0 && bytes > blockBytesMax) break;
    }
    return this.queue.splice(0, count);
  }

  private async writeBlock(group: readonly Waiting[]): Promise<void> {
    const entries = group.flatMap((waiting) => waiting.entries);
    try {
      const text = toDisplayString(entries);
      const body =
        text.length <= syncBytesMax
          ? Bun.zstdCompressSync(text, compression)
          : await Bun.zstdCompress(text, compression);
      const end = performance.now() + triesMs;
      const wasUnavailable = this.isUnavailable;
      const first = await this.postgres.untilDone(
        () => this.store(body, entries.length, text.length, Math.max(end - performance.now(), tryMs)),
        () => !wasUnavailable && performance.now() < end,
      );
      this.recordWritable();
      this.recordLast(first + entries.length - 1);
      this.durableCount += entries.length;
      this.waitingEntries += entries.length;
      let next = first;
      for (const waiting of group) {
        waiting.resolve(next);
        next += waiting.entries.length;
      }
    } catch (error) {
      this.isUnavailable = error instanceof PostgresUnreachableError;
      this.failedAt = performance.now();
      // The next block queries the last stored block number.
      this.block = undefined;
      this.options.onFailure?.(error, this.lane);
      for (const { reject } of group) reject(new JournalUnavailableError("write_failed"));
      this.options.onRejected?.("write_failed", this.lane);
    } finally {
      this.queuedBytes -= group.reduce((sum, { bytes }) => sum + bytes, 0);
    }
  }

  /** Stores a block exactly once across retries. @returns the number of its first entry */
  private async store(body: Uint8Array, count: number, size: number, timeoutMs: number): Promise<number> {
    const { lane } = this;
    const { node } = this.options;
    this.block ??= await this.lastBlock(timeoutMs);
    const block = this.block + 1;
    // No node would load entries that are stored after the data was migrated back.
    // This node's row is updated first: a retry waits for the first attempt's lock, then matches no row.
    const [stored] = await this.postgres.run(
      (sql) => sql`
        WITH mine AS (
          UPDATE flagkeep.front_block SET block = ${block}, last_seq = flagkeep.take_numbers(${count}) + ${count} - 1
          WHERE front = ${node} AND lane = ${lane} AND block = ${block - 1}
            AND NOT EXISTS (SELECT 1 FROM flagkeep.secret WHERE name = ${returnedName}) RETURNING last_seq
        )
        INSERT INTO flagkeep.journal (lane, first_seq, entries, size, body)
        SELECT ${lane}, last_seq - ${count} + 1, ${count}, ${size}, ${body as Buffer} FROM mine RETURNING first_seq`,
      timeoutMs,
    );
    this.block = block;
    if (stored !== undefined) return Number(stored.first_seq);
    // Already stored: only the response was lost.
    const [known] = await this.postgres.run(
      (sql) => sql`SELECT block, last_seq FROM flagkeep.front_block WHERE front = ${node} AND lane = ${lane}`,
      timeoutMs,
    );
    if (Number(known?.block) !== block) {
      await this.postgres.run((sql) => assertNodeMayWrite(sql), timeoutMs);
      throw new Error(`Block ${block} cannot follow ${known?.block}.`);
    }
    return Number(known!.last_seq) - count + 1;
  }

  private async lastBlock(timeoutMs: number): Promise<number> {
    const { node } = this.options;
    const [row] = await this.postgres.run(
      (sql) => sql`INSERT INTO flagkeep.front_block VALUES (${node}, ${this.lane}, 0)
        ON CONFLICT (front, lane) DO UPDATE SET block = front_block.block RETURNING block`,
      timeoutMs,
    );
    return Number(row!.block);
  }
}

/** UTF-8, each entry followed by a line feed. */
function toDisplayString(entries: readonly EntryJson[]): Uint8Array {
  if (entries.every((entry) => typeof entry === "string")) return Buffer.from(`${entries.join("\n")}\n`);
  return Buffer.concat(
    entries.flatMap((entry) => [typeof entry === "string" ? Buffer.from(entry) : entry, lineFeed]),
  );
}

const lineFeed = Buffer.from("\n");
