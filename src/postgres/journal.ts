/**
 * The journal in PostgreSQL: what the fronts have acknowledged, in the order of its commits.
 *
 * What one front has at a time becomes one block of a lane, compressed, numbered by the lane's row in the statement that
 * stores it. A commit whose answer is lost is asked for again under its number, so that a block is there once.
 */

import type { EntryText } from "../journal/entry.ts";
import type { Admission, JournalPort } from "../journal/journal.ts";
import { JournalUnavailableError } from "../journal/lane-writer.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import { type Postgres, PostgresUnreachable } from "./connection.ts";

export interface PostgresJournalSettings {
  /** Names this front in the journal. */
  front: string;
  /** Bytes that may wait for PostgreSQL before new entries are refused. */
  queueBytesMax: number;
  onRefused?: (reason: JournalUnavailableError["reason"], lane: Lane) => void;
  onFailure?: (error: unknown, lane: Lane) => void;
}

/** Bytes of one block at most, unless one request has more. */
const blockBytesMax = 8 * 1024 * 1024;
/** Blocks of this size are compressed by another thread. */
const ownThreadBytesMax = 64 * 1024;
/** How long a block is tried before its requests are refused: as long as a standby takes to be promoted. */
const triesMs = 5_000;
/** How long each of its tries may take at least. */
const tryMs = 1_000;
/** After that, new requests are refused at once for as long as nothing gets through. */
const lookEveryMs = 1_000;
const compression = { level: 1 } as const;

interface Waiting {
  entries: readonly EntryText[];
  bytes: number;
  resolve: (first: number) => void;
  reject: (error: Error) => void;
}

/** Whether there is room is PostgreSQL's affair: `admission` tells no bytes. */
export class PostgresJournal implements JournalPort {
  private readonly writers: Record<Lane, BlockWriter>;
  private readonly lookTimer: ReturnType<typeof setInterval>;

  constructor(
    private readonly postgres: Postgres,
    settings: PostgresJournalSettings,
  ) {
    this.writers = {
      realtime: new BlockWriter("realtime", postgres, settings),
      historical: new BlockWriter("historical", postgres, settings),
    };
    this.lookTimer = setInterval(() => void this.look(), lookEveryMs);
    void this.look();
  }

  append(lane: Lane, entries: readonly EntryText[]): Promise<number> {
    return this.writers[lane].append(entries);
  }

  admission(): Admission {
    const isFailing = lanes.some((lane) => this.writers[lane].isAway);
    const trouble = isFailing ? "PostgreSQL cannot be written to." : null;
    return { isOpen: !isFailing, isFailing, trouble, freeBytes: 0, neededBytes: 0, totalBytes: 0 };
  }

  state() {
    return lanes.map((lane) => {
      const { lastSeq, durableCount: durable, queuedBytes } = this.writers[lane];
      return { lane, lastSeq, durable, queuedBytes };
    });
  }

  async seal(): Promise<void> {
    // Whoever loads events sees each block as soon as it is there.
  }

  async close(): Promise<void> {
    clearInterval(this.lookTimer);
    await Promise.all(lanes.map((lane) => this.writers[lane].close()));
  }

  /** How far the lanes are: other fronts append, too. */
  private async look(): Promise<void> {
    try {
      const rows = await this.postgres.run((sql) => sql`SELECT name, next_seq FROM flagkeep.lane`);
      for (const { name, next_seq } of rows) this.writers[name as Lane].noteLast(Number(next_seq) - 1);
    } catch {
      // Whoever appends finds out.
    }
  }
}

class BlockWriter {
  lastSeq = 0;
  /** Entries that this front has made durable. */
  durableCount = 0;
  queuedBytes = 0;
  /** Nothing got through of late. */
  isAway = false;
  private queue: Waiting[] = [];
  private running: Promise<void> | undefined;
  private isClosed = false;
  /** Counts this front's blocks of the lane; unknown at first. */
  private block: number | undefined;
  private lookedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly lane: Lane,
    private readonly postgres: Postgres,
    private readonly settings: PostgresJournalSettings,
  ) {}

  append(entries: readonly EntryText[]): Promise<number> {
    const refusal = this.refusal();
    if (refusal !== undefined) {
      this.settings.onRefused?.(refusal, this.lane);
      return Promise.reject(new JournalUnavailableError(refusal));
    }
    const bytes = entries.reduce((sum, entry) => sum + entry.length + 1, 0);
    this.queuedBytes += bytes;
    return new Promise((resolve, reject) => {
      this.queue.push({ entries, bytes, resolve, reject });
      this.running ??= this.run();
    });
  }

  noteLast(seq: number): void {
    this.isAway = false;
    this.lastSeq = Math.max(this.lastSeq, seq);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
  }

  private refusal(): JournalUnavailableError["reason"] | undefined {
    if (this.isClosed) return "closed";
    if (this.queuedBytes > this.settings.queueBytesMax) return "overloaded";
    if (!this.isAway || performance.now() - this.lookedAt > lookEveryMs) {
      this.lookedAt = performance.now();
      return undefined;
    }
    return "write_failed";
  }

  private async run(): Promise<void> {
    // One turn of the event loop, so that all requests that are ready now share the first commit.
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
      const text = textOf(entries);
      const body =
        text.length <= ownThreadBytesMax
          ? Bun.zstdCompressSync(text, compression)
          : await Bun.zstdCompress(text, compression);
      const end = performance.now() + triesMs;
      const wasAway = this.isAway;
      const first = await this.postgres.untilDone(
        () => this.store(body, entries.length, text.length, Math.max(end - performance.now(), tryMs)),
        () => !wasAway && performance.now() < end,
      );
      this.noteLast(first + entries.length - 1);
      this.durableCount += entries.length;
      let next = first;
      for (const waiting of group) {
        waiting.resolve(next);
        next += waiting.entries.length;
      }
    } catch (error) {
      this.isAway = error instanceof PostgresUnreachable;
      // The next block asks which is the last that is there.
      this.block = undefined;
      this.settings.onFailure?.(error, this.lane);
      for (const { reject } of group) reject(new JournalUnavailableError("write_failed"));
      this.settings.onRefused?.("write_failed", this.lane);
    } finally {
      this.queuedBytes -= group.reduce((sum, { bytes }) => sum + bytes, 0);
    }
  }

  /** Stores a block once, however often it is called for the same. @returns the number of its first entry. */
  private async store(body: Uint8Array, count: number, size: number, timeoutMs: number): Promise<number> {
    const { lane } = this;
    const { front } = this.settings;
    this.block ??= await this.lastBlock(timeoutMs);
    const block = this.block + 1;
    // The row of this front comes first: a second try waits there for the first, and then finds nothing to do.
    const [stored] = await this.postgres.run(
      (sql) => sql`
        WITH mine AS (
          UPDATE flagkeep.front_block SET block = ${block}
          WHERE front = ${front} AND lane = ${lane} AND block = ${block - 1} RETURNING 1
        ), numbered AS (
          UPDATE flagkeep.lane SET next_seq = next_seq + ${count} WHERE name = ${lane} AND EXISTS (SELECT 1 FROM mine)
          RETURNING next_seq - ${count} AS first_seq
        ), noted AS (
          UPDATE flagkeep.front_number SET first_seq = numbered.first_seq FROM numbered WHERE front = ${front} AND lane = ${lane}
        ), stored AS (
          INSERT INTO flagkeep.journal (lane, first_seq, entries, size, body)
          SELECT ${lane}, first_seq, ${count}, ${size}, ${body as Buffer} FROM numbered
        )
        SELECT first_seq FROM numbered`,
      timeoutMs,
    );
    this.block = block;
    if (stored !== undefined) return Number(stored.first_seq);
    // It is there already: only the answer was lost.
    const [known] = await this.postgres.run(
      (
        sql,
      ) => sql`SELECT block, first_seq FROM flagkeep.front_block JOIN flagkeep.front_number USING (front, lane)
        WHERE front = ${front} AND lane = ${lane}`,
      timeoutMs,
    );
    if (Number(known?.block) !== block) throw new Error(`Block ${block} cannot follow ${known?.block}.`);
    return Number(known!.first_seq);
  }

  private async lastBlock(timeoutMs: number): Promise<number> {
    const { front } = this.settings;
    return await this.postgres.transaction(async (t) => {
      await t`INSERT INTO flagkeep.front_number VALUES (${front}, ${this.lane}, 0) ON CONFLICT DO NOTHING`;
      const [row] = await t`INSERT INTO flagkeep.front_block VALUES (${front}, ${this.lane}, 0)
        ON CONFLICT (front, lane) DO UPDATE SET block = front_block.block RETURNING block`;
      return Number(row!.block);
    }, timeoutMs);
  }
}

/** Each entry ended by a line feed, as UTF-8. */
function textOf(entries: readonly EntryText[]): Uint8Array {
  if (entries.every((entry) => typeof entry === "string")) return Buffer.from(`${entries.join("\n")}\n`);
  return Buffer.concat(
    entries.flatMap((entry) => [typeof entry === "string" ? Buffer.from(entry) : entry, lineFeed]),
  );
}

const lineFeed = Buffer.from("\n");
