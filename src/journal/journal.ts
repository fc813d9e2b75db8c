/**
 * The durable, ordered, append-only log of all ingested entries. An entry for which `append` has resolved survives a
 * crash of the process and of the machine. It stays in the journal until both stores have applied it (the pipeline's
 * cursors) and the event store has checkpointed it to its file.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  bytesNeededToAccept,
  type Disk,
  diskCost,
  type PendingBytes,
  reservedBytes,
  systemDisk,
} from "./disk.ts";
import type { EntryJson } from "./entry.ts";
import { JournalUnavailableError, type LaneOptions, LaneWriter } from "./lane-writer.ts";
import { PreparedLines } from "./prepared-lines.ts";
import { recoverLane, type TornWrite } from "./recovery.ts";
import type { Lane, SealedSegment } from "./segment.ts";
import { lanes } from "./segment.ts";

export interface JournalOptions extends LaneOptions {
  /** Free disk space to keep in addition to what pending entries need; at most 5 % of the volume. */
  reserveBytes: number;
}

export interface JournalEvents {
  onSealed: (segment: SealedSegment) => void;
  onFailure: (error: unknown, lane: Lane) => void;
  /** Called for every rejected request. */
  onRejected?: (reason: JournalUnavailableError["reason"], lane: Lane) => void;
  /** Pending bytes of sealed segments; default: none. */
  debt?: () => PendingBytes;
}

/** Whether new entries are accepted, and why not. */
export interface Admission {
  isOpen: boolean;
  /** A write failed recently. */
  isFailing: boolean;
  /** Reason of the last failed write, if known; otherwise it is only in the log. */
  problem?: string | null;
  freeBytes: number;
  /** Free bytes below which new entries are rejected. */
  neededBytes: number;
  totalBytes: number;
}

/** Progress of a lane. */
export interface LaneState {
  lane: Lane;
  /** The highest assigned sequence number. */
  lastSeq: number;
  /** Entries that are not loaded, where numbers have gaps. */
  waitingEntries?: number;
  /** Entries made durable since startup. */
  durable: number;
  /** Approximate bytes that are not durable yet. */
  queuedBytes: number;
}

/** The journal's interface for writers, independent of its storage. */
export interface JournalPort {
  /**
   * Appends the entries of one request contiguously and resolves when they are durable.
   * @param entries JSON objects (string or UTF-8) without the leading `{"seq":N,` and without line breaks
   * @returns the first sequence number; the others follow without gaps
   * @throws {JournalUnavailableError} nothing was stored, as far as known: disk full, disk error, or queue full; retry
   */
  append(lane: Lane, entries: readonly EntryJson[]): Promise<number>;
  admission(): Admission;
  state(): LaneState[];
  /** Makes everything acknowledged before the call available to the pipeline. */
  seal(): Promise<void>;
  /** Rejects new entries and makes queued ones durable. */
  close(): Promise<void>;
}

/** A journal that copies lines of other processes. */
export interface PreparedSink {
  /** Like `JournalPort.append`; all entries are durable together. */
  append(lane: Lane, lines: PreparedLines): Promise<number>;
}

const spaceCheckIntervalMs = 500;
/** Check free space again after this many bytes: other processes may have used the volume. */
const spaceCheckBytes = 8 * 1024 * 1024;
/** How long a failed write is reported. */
const failingMs = 10_000;

/**
 * The journal in a data directory; one writer per directory. Rejects entries (`JournalUnavailableError`) before the
 * disk is full and shortly after a failed write, then accepts entries again automatically.
 */
export class Journal implements JournalPort {
  private readonly writers = new Map<Lane, LaneWriter>();
  /** Bytes that may be accepted before the next check of free space. */
  private capacityBytes = Number.POSITIVE_INFINITY;
  /** Bytes used since the last check started. */
  private reservedBytes = 0;
  private isLooking = false;
  private failedAt = Number.NEGATIVE_INFINITY;
  private space: Omit<Admission, "isOpen" | "isFailing"> = { freeBytes: 0, neededBytes: 0, totalBytes: 0 };
  private spaceTimer: ReturnType<typeof setInterval>;

  private constructor(
    private readonly folder: string,
    private readonly options: JournalOptions,
    private readonly events: JournalEvents,
    private readonly disk: Disk,
  ) {
    this.spaceTimer = setInterval(() => void this.checkSpace(), spaceCheckIntervalMs);
    this.spaceTimer.unref();
  }

  /**
   * Opens the journal in a folder and recovers it after a crash.
   * @param seenSeq per lane, the highest sequence number known to the stores
   * @returns the journal, the segments to load (oldest first) and the torn writes
   */
  static async open(
    folder: string,
    seenSeq: Record<Lane, number>,
    options: JournalOptions,
    events: JournalEvents,
    disk: Disk = systemDisk,
  ): Promise<{ journal: Journal; segments: SealedSegment[]; quarantined: TornWrite[] }> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const journal = new Journal(folder, options, events, disk);
    const segments: SealedSegment[] = [];
    const quarantined: TornWrite[] = [];
    for (const lane of lanes) {
      const laneFolder = join(folder, lane);
      const recovered = recoverLane(laneFolder, lane, join(folder, "quarantine"), seenSeq[lane]);
      segments.push(...recovered.segments);
      quarantined.push(...recovered.quarantined);
      const onFailure = (error: unknown) => {
        journal.failedAt = performance.now();
        events.onFailure(error, lane);
      };
      const onSealed = (segment: SealedSegment) => journal.handOver(segment);
      journal.writers.set(
        lane,
        new LaneWriter(lane, laneFolder, recovered.nextSeq, disk, options, onSealed, onFailure),
      );
    }
    await journal.checkSpace();
    return { journal, segments, quarantined };
  }

  /**
   * Hands a sealed segment to the pipeline. Before a historical one, hands over all realtime entries acknowledged so
   * far: entries acknowledged first are loaded first (contract, ingestion 9).
   */
  private async handOver(segment: SealedSegment): Promise<void> {
    if (segment.lane === "historical") await this.writers.get("realtime")!.sealAcknowledged();
    this.events.onSealed(segment);
  }

  append(lane: Lane, entries: readonly EntryJson[] | PreparedLines): Promise<number> {
    const bytes =
      entries instanceof PreparedLines
        ? entries.length
        : entries.reduce((sum, { length }) => sum + length, 0);
    const requests = entries instanceof PreparedLines ? entries.requests : 1;
    const cost = diskCost(bytes);
    if (cost > this.capacityBytes) return Promise.reject(this.rejection("disk_full", lane, requests));
    this.capacityBytes -= cost;
    this.reservedBytes += cost;
    if (this.reservedBytes >= spaceCheckBytes) void this.checkSpace();
    return this.writers
      .get(lane)!
      .append(entries)
      .catch((error: unknown) => {
        throw error instanceof JournalUnavailableError ? this.rejection(error.reason, lane, requests) : error;
      });
  }

  admission(): Admission {
    const isFailing = performance.now() - this.failedAt < failingMs;
    return { isOpen: this.capacityBytes > 0, isFailing, ...this.space };
  }

  private rejection(
    reason: JournalUnavailableError["reason"],
    lane: Lane,
    requests: number,
  ): JournalUnavailableError {
    for (let count = 0; count < requests; count++) this.events.onRejected?.(reason, lane);
    return new JournalUnavailableError(reason);
  }

  /** Seals the open segments, so that the pipeline gets everything acknowledged before the call. */
  async seal(): Promise<void> {
    await Promise.all([...this.writers.values()].map((writer) => writer.seal()));
  }

  async close(): Promise<void> {
    clearInterval(this.spaceTimer);
    await Promise.all([...this.writers.values()].map((writer) => writer.close()));
  }

  /** For metrics and `status`. */
  state(): LaneState[] {
    return lanes.map((lane) => {
      const writer = this.writers.get(lane)!;
      return { lane, lastSeq: writer.lastSeq, durable: writer.durableCount, queuedBytes: writer.queuedBytes };
    });
  }

  private async checkSpace(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    this.reservedBytes = 0;
    try {
      const { freeBytes, totalBytes } = await this.disk.space(this.folder);
      const reserve = reservedBytes(this.options.reserveBytes, totalBytes);
      const neededBytes = Math.ceil(bytesNeededToAccept(reserve, this.debt()));
      this.space = { freeBytes, neededBytes, totalBytes };
      // Entries accepted during the check may not be on disk yet.
      this.capacityBytes = freeBytes - neededBytes - this.reservedBytes;
    } catch {
      // If the check fails, the writes themselves report a full disk.
      this.capacityBytes = Number.POSITIVE_INFINITY;
    } finally {
      this.isLooking = false;
    }
  }

  private debt(): PendingBytes {
    const { unloaded, unwritten } = this.events.debt?.() ?? { unloaded: 0, unwritten: 0 };
    const open = [...this.writers.values()].reduce(
      (sum, { openBytes, queuedBytes }) => sum + openBytes + queuedBytes,
      0,
    );
    return { unloaded: unloaded + open, unwritten };
  }
}
