/**
 * The durable, ordered, append-only log of everything that was ingested.
 *
 * An entry that `append` has resolved for survives a crash of the process and of the machine. It stays in the
 * journal until both stores have taken it (the pipeline's cursors) and the event store has written it to its file.
 */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Disk, realDisk } from "./disk.ts";
import { JournalUnavailable, type LaneSettings, LaneWriter } from "./lane-writer.ts";
import { type Quarantined, recoverLane } from "./recovery.ts";
import type { Lane, SealedSegment } from "./segment.ts";
import { lanes } from "./segment.ts";

export interface JournalSettings extends LaneSettings {
  /** Free disk space under which new entries are refused; never more than 5 % of the volume. */
  reserveBytes: number;
}

export interface JournalEvents {
  onSealed: (segment: SealedSegment) => void;
  onFailure: (error: unknown, lane: Lane) => void;
}

const spaceCheckIntervalMs = 500;

export class Journal {
  private readonly writers = new Map<Lane, LaneWriter>();
  private spaceIsShort = false;
  private spaceTimer: ReturnType<typeof setInterval>;

  private constructor(
    private readonly folder: string,
    private readonly settings: JournalSettings,
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
    disk: Disk = realDisk,
  ): Promise<{ journal: Journal; segments: SealedSegment[]; quarantined: Quarantined[] }> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const journal = new Journal(folder, settings, disk);
    const segments: SealedSegment[] = [];
    const quarantined: Quarantined[] = [];
    for (const lane of lanes) {
      const laneFolder = join(folder, lane);
      const recovered = recoverLane(laneFolder, lane, join(folder, "quarantine"), seenSeq[lane]);
      segments.push(...recovered.segments);
      quarantined.push(...recovered.quarantined);
      const onFailure = (error: unknown) => events.onFailure(error, lane);
      journal.writers.set(
        lane,
        new LaneWriter(lane, laneFolder, recovered.nextSeq, disk, settings, events.onSealed, onFailure),
      );
    }
    await journal.checkSpace();
    return { journal, segments, quarantined };
  }

  /**
   * Appends the entries of one request, in order, and resolves once they are on the disk.
   *
   * @param entries each the text of a JSON object without its leading `{"seq":N,` and without line breaks.
   * @returns the sequence number of the first; the rest follow without gaps.
   * @throws {JournalUnavailable} nothing was kept: the disk is full or broken, or too much is waiting.
   */
  append(lane: Lane, entries: readonly string[]): Promise<number> {
    if (this.spaceIsShort) return Promise.reject(new JournalUnavailable("disk_full"));
    return this.writers.get(lane)!.append(entries);
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
  state() {
    return lanes.map((lane) => {
      const writer = this.writers.get(lane)!;
      return { lane, lastSeq: writer.lastSeq, durable: writer.durableCount, queuedBytes: writer.queuedBytes };
    });
  }

  private async checkSpace(): Promise<void> {
    try {
      const { freeBytes, totalBytes } = await this.disk.space(this.folder);
      this.spaceIsShort = freeBytes < Math.min(this.settings.reserveBytes, totalBytes * 0.05);
    } catch {
      // Without an answer the writes themselves tell.
      this.spaceIsShort = false;
    }
  }
}
