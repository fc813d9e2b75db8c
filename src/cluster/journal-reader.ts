/** Reads the journal in PostgreSQL on the node that loads events, and deletes loaded blocks. */

import { getLines } from "../journal/entry.ts";
import type { JournalBatch } from "../journal/reader.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import type { Postgres } from "./connection.ts";
import { SafeNumber } from "./safe-number.ts";

/** Approximate bytes of entries per batch; a single block may be larger. */
const batchBytesMax = 4 * 1024 * 1024;
/** Maximum bytes per lane read ahead of the pipeline. */
const aheadBytesMax = 32 * 1024 * 1024;
const blocksAtOnce = 500;
/** Polling costs the nodes less than a notification per block. */
const checkIntervalMs = 100;
/** Timeout of a read of many blocks. */
const readMs = 30_000;
const lineFeed = 0x0a;

export interface ReaderDeps {
  /** Accepts batches in order. */
  offer(batches: readonly JournalBatch[]): void;
  /** Bytes offered and not applied yet. */
  waitingBytes(lane: Lane): number;
  onFailure(error: unknown): void;
}

export class JournalReader {
  private timer: ReturnType<typeof setInterval> | undefined;
  private looking: Promise<void> | undefined;
  private isReportedMeanwhile = false;
  private hasRereadPartialBlock = false;
  private readonly safeNumber: SafeNumber;

  /** @param read per lane, the last number that both stores contain; possibly in the middle of a block */
  constructor(
    private readonly postgres: Postgres,
    private readonly read: Record<Lane, number>,
    private readonly deps: ReaderDeps,
  ) {
    this.safeNumber = new SafeNumber(postgres);
  }

  start(): void {
    this.timer = setInterval(() => this.check(), checkIntervalMs);
    this.check();
  }

  /** Reads new blocks; call it when there may be some. */
  check(): void {
    if (this.looking !== undefined) {
      this.isReportedMeanwhile = true;
      return;
    }
    this.isReportedMeanwhile = false;
    this.looking = this.readAll().then(
      () => this.rest(),
      (error) => {
        this.rest();
        this.deps.onFailure(error);
      },
    );
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.timer = undefined;
    await this.looking;
  }

  /** Deletes blocks that are recorded as loaded. */
  async forget(loaded: Record<Lane, number>): Promise<void> {
    for (const lane of lanes) {
      await this.postgres.run(
        (sql) =>
          sql`DELETE FROM flagkeep.journal
          WHERE lane = ${lane} AND first_seq <= ${loaded[lane]} AND first_seq + entries - 1 <= ${loaded[lane]}`,
        readMs,
      );
    }
  }

  private rest(): void {
    this.looking = undefined;
    if (this.isReportedMeanwhile && this.timer !== undefined) this.check();
  }

  private async readAll(): Promise<void> {
    await this.rereadPartialBlock();
    const end = await this.safeNumber.read();
    // Realtime events acknowledged before historical ones are loaded first (contract, ingestion 9): read historical
    // blocks only if the realtime lane was read up to the same number.
    if (await this.readLane("realtime", end)) await this.readLane("historical", end);
  }

  /** @param end last number to read @returns whether everything up to `end` was read */
  private async readLane(lane: Lane, end: number): Promise<boolean> {
    while (this.read[lane] < end) {
      if (this.timer === undefined || this.deps.waitingBytes(lane) >= aheadBytesMax) return false;
      const batch = await this.next(lane, end);
      if (batch === undefined) break;
      this.read[lane] = batch.last;
      this.deps.offer([batch]);
    }
    return true;
  }

  /** If a load stopped within a block (disk full), that block is read again from its start. */
  private async rereadPartialBlock(): Promise<void> {
    if (this.hasRereadPartialBlock) return;
    for (const lane of lanes) {
      const [block] = await this.postgres.run(
        (sql) => sql`
          SELECT first_seq, entries FROM flagkeep.journal
          WHERE lane = ${lane} AND first_seq <= ${this.read[lane]} ORDER BY first_seq DESC LIMIT 1`,
      );
      if (block === undefined) continue;
      const first = Number(block.first_seq);
      if (first + block.entries - 1 > this.read[lane]) this.read[lane] = first - 1;
    }
    this.hasRereadPartialBlock = true;
  }

  private async next(lane: Lane, end: number): Promise<JournalBatch | undefined> {
    const blocks = await this.postgres.run(
      (sql) => sql`
        SELECT first_seq, entries, size, body FROM (
          SELECT *, sum(size) OVER (ORDER BY first_seq) - size AS before FROM (
            SELECT * FROM flagkeep.journal WHERE lane = ${lane} AND first_seq > ${this.read[lane]} AND first_seq <= ${end} ORDER BY first_seq LIMIT ${blocksAtOnce}
          ) AS next_blocks
        ) AS counted WHERE before < ${batchBytesMax} ORDER BY first_seq`,
      readMs,
    );
    const oldest = blocks[0];
    if (oldest === undefined) return undefined;
    const first = Number(oldest.first_seq);
    const texts: Buffer[] = [];
    for (const { first_seq, body } of blocks)
      texts.push(numbered(Number(first_seq), Bun.zstdDecompressSync(body as Uint8Array) as Buffer));
    const { first_seq, entries } = blocks.at(-1)!;
    const last = Number(first_seq) + entries - 1;
    const bytes = Buffer.concat(texts);
    return { lane, first, last, bytes: bytes.length, text: async () => ({ bytes }) };
  }
}

function numbered(first: number, text: Buffer): Buffer {
  const entries: Buffer[] = [];
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf(lineFeed, start);
    entries.push(text.subarray(start, end));
    start = end + 1;
  }
  return getLines(first, entries);
}
