/**
 * The durable, ordered, append-only log of everything that was ingested.
 *
 * An entry that `append` has resolved for survives a crash of the process and of the machine. It stays in the
 * journal until both stores have taken it (the pipeline's cursors) and the event store has written it to its file.
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
import type { EntryText } from "./entry.ts";
import { JournalUnavailableError, type LaneSettings, LaneWriter } from "./lane-writer.ts";
import { recoverLane, type TornWrite } from "./recovery.ts";
import type { Lane, SealedSegment } from "./segment.ts";
import { lanes } from "./segment.ts";

export interface JournalSettings extends LaneSettings {
  /** Free disk space to keep in addition to what pending entries need; at most 5 % of the volume. */
  reserveBytes: number;
}

export interface JournalEvents {
  onSealed: (segment: SealedSegment) => void;
  onFailure: (error: unknown, lane: Lane) => void;
  /** Called for every rejected request. */
  onRefused?: (reason: JournalUnavailableError["reason"], lane: Lane) => void;
  /** What of the sealed segments waits; left out: nothing does. */
  debt?: () => PendingBytes;
}

/** Whether new entries are taken, and what hinders it. */
export interface Admission {
  isOpen: boolean;
  /** A write failed just now. */
  isFailing: boolean;
  /** Why the last write failed, where that is known; left out: the log has it. */
  trouble?: string | null;
  freeBytes: number;
  /** Free bytes below which new entries are rejected. */
  neededBytes: number;
  totalBytes: number;
}

/** How far a lane is. */
export interface LaneState {
  lane: Lane;
  /** Sequence number of the newest entry that was given out. */
  lastSeq: number;
  /** Entries made durable since the start. */
  durable: number;
  /** Bytes (about) that wait to be durable. */
  queuedBytes: number;
}

/** The journal's interface for writers, independent of its storage. */
export interface JournalPort {
  /**
   * Appends the entries of one request, together and in order, and resolves once they are durable.
   *
   * @param entries each the text of a JSON object, or its UTF-8, without its leading `{"seq":N,` and without line breaks.
   * @returns the sequence number of the first; the rest follow without gaps.
   * @throws {JournalUnavailableError} nothing was stored, as far as is known: disk full, disk error, or queue
   *                              full. The client should retry.
   */
  append(lane: Lane, entries: readonly EntryText[]): Promise<number>;
  /** Whether new entries are taken at this moment. */
  admission(): Admission;
  state(): LaneState[];
  /** Lets the pipeline have everything that was acknowledged before the call. */
  seal(): Promise<void>;
  /** Rejects new entries and makes the queued ones durable. */
  close(): Promise<void>;
}

const spaceCheckIntervalMs = 500;
/** Check free space again after this many bytes: other processes may have used the volume. */
const spaceCheckBytes = 8 * 1024 * 1024;
/** So long after a failed write it is said. */
const failingMs = 10_000;

/**
 * The journal in a data directory; one writer per directory. Rejects entries (`JournalUnavailableError`) before the disk
 * is full and shortly after a failed write, then accepts new ones automatically.
 */
export class Journal implements JournalPort {
  private readonly writers = new Map<Lane, LaneWriter>();
  /** Bytes that may be accepted before the next check of free space. */
  private capacityBytes = Number.POSITIVE_INFINITY;
  /** Bytes used since the last check started. */
  private takenBytes = 0;
  private isLooking = false;
  private failedAt = Number.NEGATIVE_INFINITY;
  private space: Omit<Admission, "isOpen" | "isFailing"> = { freeBytes: 0, neededBytes: 0, totalBytes: 0 };
  private spaceTimer: ReturnType<typeof setInterval>;

  private constructor(
    private readonly folder: string,
    private readonly settings: JournalSettings,
    private readonly events: JournalEvents,
    private readonly disk: Disk,
  ) {
    this.spaceTimer = setInterval(() => void this.checkSpace(), spaceCheckIntervalMs);
    this.spaceTimer.unref();
  }

  /**
   * Opens the journal below a folder and recovers what a crash has left.
   *
   * @param seenSeq per lane, the highest sequence number the stores know.
   * @returns the journal, the segments that wait for the pipeline (oldest first) and the torn writes.
   */
  static async open(
    folder: string,
    seenSeq: Record<Lane, number>,
    settings: JournalSettings,
    events: JournalEvents,
    disk: Disk = systemDisk,
  ): Promise<{ journal: Journal; segments: SealedSegment[]; quarantined: TornWrite[] }> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const journal = new Journal(folder, settings, events, disk);
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
        new LaneWriter(lane, laneFolder, recovered.nextSeq, disk, settings, onSealed, onFailure),
      );
    }
    await journal.checkSpace();
    return { journal, segments, quarantined };
  }

  /**
   * Gives the pipeline a sealed segment. Before one of history, it gets the realtime entries that were acknowledged until
   * now: what was acknowledged first is loaded first (contract, ingestion 9).
   */
  private async handOver(segment: SealedSegment): Promise<void> {
    if (segment.lane === "historical") await this.writers.get("realtime")!.sealAcknowledged();
    this.events.onSealed(segment);
  }

  append(lane: Lane, entries: readonly EntryText[]): Promise<number> {
    const cost = diskCost(entries.reduce((sum, entry) => sum + entry.length, 0));
    if (cost > this.capacityBytes) return Promise.reject(this.refusal("disk_full", lane));
    this.capacityBytes -= cost;
    this.takenBytes += cost;
    if (this.takenBytes >= spaceCheckBytes) void this.checkSpace();
    return this.writers
      .get(lane)!
      .append(entries)
      .catch((error: unknown) => {
        if (error instanceof JournalUnavailableError) this.events.onRefused?.(error.reason, lane);
        throw error;
      });
  }

  /** Whether new entries are taken at this moment. */
  admission(): Admission {
    const isFailing = performance.now() - this.failedAt < failingMs;
    return { isOpen: this.capacityBytes > 0, isFailing, ...this.space };
  }

  private refusal(reason: JournalUnavailableError["reason"], lane: Lane): JournalUnavailableError {
    this.events.onRefused?.(reason, lane);
    return new JournalUnavailableError(reason);
  }

  /** Seals what is open, so that the pipeline gets everything that was acknowledged before the call. */
  async seal(): Promise<void> {
    await Promise.all([...this.writers.values()].map((writer) => writer.seal()));
  }

  async close(): Promise<void> {
    clearInterval(this.spaceTimer);
    await Promise.all([...this.writers.values()].map((writer) => writer.close()));
  }

  /** What the metrics and `status` show. */
  state(): LaneState[] {
    return lanes.map((lane) => {
      const writer = this.writers.get(lane)!;
      return { lane, lastSeq: writer.lastSeq, durable: writer.durableCount, queuedBytes: writer.queuedBytes };
    });
  }

  private async checkSpace(): Promise<void> {
    if (this.isLooking) return;
    this.isLooking = true;
    this.takenBytes = 0;
    try {
      const { freeBytes, totalBytes } = await this.disk.space(this.folder);
      const reserve = reservedBytes(this.settings.reserveBytes, totalBytes);
      const neededBytes = Math.ceil(bytesNeededToAccept(reserve, this.debt()));
      this.space = { freeBytes, neededBytes, totalBytes };
      // What was taken meanwhile may not be on the disk yet.
      this.capacityBytes = freeBytes - neededBytes - this.takenBytes;
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
