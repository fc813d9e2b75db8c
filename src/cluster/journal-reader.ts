/** Reads the journal in PostgreSQL on a node that loads events. */

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
/** How every entry starts. */
const projectStart = Buffer.from('"project_id":');

export interface ReaderDeps {
  /** Accepts batches in order. */
  offer(batches: readonly JournalBatch[]): void;
  /** Bytes offered and not applied yet. */
  waitingBytes(lane: Lane): number;
  onFailure(error: unknown): void;
}

/** The part of the journal that one of several engines reads. */
export interface EntryFilter {
  includes(lane: Lane, projectId: number, seq: number): boolean;
  /**
   * Advances the position past a batch without included entries, which then need not go through the pipeline.
   * @returns false if earlier batches are still being loaded: this one is offered after them, and advances the position
   */
  skip(lane: Lane, last: number): boolean;
  /** Reads one lane, up to a number; undefined: both, up to the safe number. */
  readonly only: { readonly lane: Lane; readonly last: number } | undefined;
}

export class JournalReader {
  private timer: ReturnType<typeof setInterval> | undefined;
  private reading: Promise<void> | undefined;
  private isReportedMeanwhile = false;
  private hasRereadPartialBlock = false;
  private readonly safeNumber: SafeNumber;

  /** @param read per lane, the last number that both stores contain; possibly in the middle of a block */
  constructor(
    private readonly postgres: Postgres,
    private readonly read: Record<Lane, number>,
    private readonly deps: ReaderDeps,
    private readonly filter?: EntryFilter,
  ) {
    this.safeNumber = new SafeNumber(postgres);
  }

  start(): void {
    this.timer = setInterval(() => this.check(), checkIntervalMs);
    this.check();
  }

  /** Reads new blocks; call it when there may be some. */
  check(): void {
    if (this.reading !== undefined) {
      this.isReportedMeanwhile = true;
      return;
    }
    this.isReportedMeanwhile = false;
    this.reading = this.readAll().then(
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
    await this.reading;
  }

  private rest(): void {
    this.reading = undefined;
    if (this.isReportedMeanwhile && this.timer !== undefined) this.check();
  }

  private async readAll(): Promise<void> {
    await this.rereadPartialBlock();
    const { only } = this.filter ?? {};
    if (only !== undefined) {
      await this.readLane(only.lane, only.last);
      return;
    }
    const end = await this.safeNumber.read();
    // Realtime events acknowledged before historical ones are loaded first (contract, ingestion 9): read historical
    // blocks only if the realtime lane was read up to the same number.
    if (await this.readLane("realtime", end)) await this.readLane("historical", end);
  }

  /** @param end last number to read @returns whether everything up to `end` was read */
  private async readLane(lane: Lane, end: number): Promise<boolean> {
    while (this.read[lane] < end) {
      if (this.timer === undefined || this.deps.waitingBytes(lane) >= aheadBytesMax) return false;
      const next = await this.next(lane, end);
      if (next === undefined) break;
      // The last block of an open batch may end later; nothing else is loaded with it.
      const isLimited = this.filter?.only !== undefined;
      const batch = isLimited ? { ...next, last: Math.min(next.last, end) } : next;
      this.read[lane] = batch.last;
      const isSkipped = batch.bytes === 0 && (this.filter?.skip(lane, batch.last) ?? false);
      if (!isSkipped) this.deps.offer([batch]);
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
    const { filter } = this;
    const isIncluded =
      filter && ((entry: Buffer, seq: number) => filter.includes(lane, projectIdOf(entry), seq));
    const texts = blocks.map(({ first_seq, body }) => {
      const text = Bun.zstdDecompressSync(body as Uint8Array) as Buffer;
      return numbered(Number(first_seq), text, isIncluded);
    });
    const { first_seq, entries } = blocks.at(-1)!;
    const last = Number(first_seq) + entries - 1;
    const bytes = Buffer.concat(texts);
    return { lane, first, last, bytes: bytes.length, text: async () => ({ bytes }) };
  }
}

/** @param isIncluded undefined: all */
function numbered(
  first: number,
  text: Buffer,
  isIncluded: ((entry: Buffer, seq: number) => boolean) | undefined,
): Buffer {
  const lines: Buffer[] = [];
  let entries: Buffer[] = [];
  let seq = first;
  const endRun = () => {
    if (entries.length > 0) lines.push(getLines(seq - entries.length, entries));
    entries = [];
  };
  for (let start = 0; start < text.length; seq++) {
    const end = text.indexOf(lineFeed, start);
    const entry = text.subarray(start, end);
    if (isIncluded === undefined || isIncluded(entry, seq)) entries.push(entry);
    else endRun();
    start = end + 1;
  }
  endRun();
  return lines.length === 1 ? lines[0]! : Buffer.concat(lines);
}

/** 0 if the entry is unreadable, so that one engine reports it. */
function projectIdOf(entry: Buffer): number {
  let id = 0;
  if (entry.indexOf(projectStart) !== 0) return id;
  for (let at = projectStart.length; at < entry.length; at++) {
    const digit = entry[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    id = id * 10 + digit;
  }
  return id;
}
