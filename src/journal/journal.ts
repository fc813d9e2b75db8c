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
  /** Free disk space that is kept besides what waiting entries need; never more than 5 % of the volume. */
  reserveBytes: number;
}

export interface JournalEvents {
  onSealed: (segment: SealedSegment) => void;
  onFailure: (error: unknown, lane: Lane) => void;
  /** Told of every request that is refused. */
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
  /** Free bytes under which new entries are refused. */
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

/** The journal as those see it who fill it, wherever it is kept. */
export interface JournalPort {
  /**
   * Appends the entries of one request, together and in order, and resolves once they are durable.
   *
   * @param entries each the text of a JSON object, or its UTF-8, without its leading `{"seq":N,` and without line breaks.
   * @returns the sequence number of the first; the rest follow without gaps.
   * @throws {JournalUnavailableError} nothing was kept, as far as is known: no room, a broken disk, or too much is waiting. The
   *                              client should come again.
   */
  append(lane: Lane, entries: readonly EntryText[]): Promise<number>;
  /** Whether new entries are taken at this moment. */
  admission(): Admission;
  state(): LaneState[];
  /** Lets the pipeline have everything that was acknowledged before the call. */
  seal(): Promise<void>;
  /** Refuses new entries and makes the waiting ones durable. */
  close(): Promise<void>;
}

const spaceCheckIntervalMs = 500;
/** Also when so much room was taken since the last look: others may have taken the volume meanwhile. */
const spaceCheckBytes = 8 * 1024 * 1024;
/** So long after a failed write it is said. */
const failingMs = 10_000;

/**
 * The journal in a data directory, where nobody else writes meanwhile. Refuses entries (`JournalUnavailableError`) before the disk is
 * full, and after a failed write for a moment; then it takes new ones by itself.
 */
export class Journal implements JournalPort {
  private readonly writers = new Map<Lane, LaneWriter>();
  /** What may still be accepted before the next look at the disk. */
  private capacityBytes = Number.POSITIVE_INFINITY;
  /** Room that was taken since the last look began. */
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
   * @returns the journal, the segments that wait for the pipeline (oldest first) and what was torn off.
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
    const room = diskCost(entries.reduce((sum, entry) => sum + entry.length, 0));
    if (room > this.capacityBytes) return Promise.reject(this.refusal("disk_full", lane));
    this.capacityBytes -= room;
    this.takenBytes += room;
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
      // Without an answer the writes themselves tell.
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
