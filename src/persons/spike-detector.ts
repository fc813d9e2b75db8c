/**
 * Detects when a project receives far more realtime events than usual. A spike starts when the events of the last 60
 * seconds exceed the minimum and `factor` times the baseline rate per minute. It ends when the rate has not exceeded that
 * for a minute; its end is the last event above the threshold. A rate that lasts for the whole history becomes the
 * baseline rate, which also ends the spike. Minutes in which nothing at all was received (Flagkeep was stopped) are not
 * part of the history; otherwise the first minute afterwards would be a spike. Pure: time comes from events and ticks.
 * Source: contract, README "Spike detection" and the row `GET …/spikes/`.
 */

import type { JsonObject } from "../lib/json/value.ts";
import { isoFromMicros } from "../lib/time.ts";
import { truncatedString } from "./identity/ingestion-warning.ts";
import { type MinuteCount, microsPerMinute, ProjectRate } from "./spike-rate.ts";

export interface SpikeOptions {
  /** A spike starts above this multiple of the baseline rate. */
  factor: number;
  /** A spike requires more events per minute than this. */
  minimumPerMinute: number;
  /** Length of the history for the baseline rate. */
  historyMinutes: number;
  /** Minimum length of the history for detecting spikes. */
  historyMinutesMin: number;
}

/** A spike as reported and stored. */
export interface Spike {
  id: number;
  projectId: number;
  startedMicros: number;
  /** Null while it lasts. */
  endedMicros: number | null;
  peakPerMinute: number;
  baselinePerMinute: number;
  /** Most frequent first. */
  events: { event: string; count: number }[];
  distinctIds: { distinctId: string; count: number }[];
}

/** A spike that started or ended. */
export interface SpikeSignal extends Spike {
  kind: "began" | "ended";
}

/** A spike as in `GET /api/projects/:id/spikes/`. */
export function spikeJson(spike: Spike): JsonObject {
  return {
    id: spike.id,
    started_at: isoFromMicros(spike.startedMicros),
    ended_at: spike.endedMicros === null ? null : isoFromMicros(spike.endedMicros),
    peak_per_minute: spike.peakPerMinute,
    usual_per_minute: spike.baselinePerMinute,
    events: spike.events,
    distinct_ids: spike.distinctIds.map(({ distinctId, count }) => ({ distinct_id: distinctId, count })),
  };
}

/** A spike in the detector's memory. */
export interface WatchedSpike {
  /** Undefined until it is stored. */
  id: number | undefined;
  projectId: number;
  startedMicros: number;
  endedMicros: number | null;
  lastAboveMicros: number;
  peakPerMinute: number;
  baselinePerMinute: number;
  contributors: Contributors;
  /** Whether it differs from the stored row. */
  isDirty: boolean;
}

/** State restored after a restart. */
export interface DetectorMemory {
  rates: { projectId: number; firstMinute: number; minutes: MinuteCount[] }[];
  openSpikes: WatchedSpike[];
}

const neverMinute = -1;

/** Names counted per project; see `HeavyHitters` for larger numbers. */
const contributorsCapacity = 100;

/** Counts of event names and distinct IDs over a period. */
export class Contributors {
  constructor(
    readonly events = new HeavyHitters(contributorsCapacity),
    readonly distinctIds = new HeavyHitters(contributorsCapacity),
  ) {}

  static restored(events: [string, number][], distinctIds: [string, number][]): Contributors {
    return new Contributors(
      new HeavyHitters(contributorsCapacity, events),
      new HeavyHitters(contributorsCapacity, distinctIds),
    );
  }

  add(event: string, distinctId: string): void {
    this.events.add(boundedName(event));
    this.distinctIds.add(boundedName(distinctId));
  }

  addAll(other: Contributors): void {
    this.events.addAll(other.events);
    this.distinctIds.addAll(other.distinctIds);
  }
}

/** Names of any length: long ones are represented by their start and a hash. */
function boundedName(name: string): string {
  const shown = truncatedString(name);
  return shown === name ? name : `${shown} (${Bun.hash.xxHash64(name).toString(16)})`;
}

interface Project {
  rate: ProjectRate;
  isRateDirty: boolean;
  spike: WatchedSpike | undefined;
  /** The threshold's baseline rate for the current minute; undefined without enough history. */
  baseline: number | undefined;
  baselineMinute: number;
  contributors: Contributors | undefined;
  previousContributors: Contributors | undefined;
}

export class SpikeDetector {
  private readonly projects = new Map<number, Project>();
  private readonly observedMinutes: Set<number>;
  private closed: WatchedSpike[] = [];

  constructor(
    private readonly options: SpikeOptions,
    memory: DetectorMemory = { rates: [], openSpikes: [] },
  ) {
    this.observedMinutes = new Set(
      memory.rates.flatMap(({ minutes }) => minutes.map(({ minute }) => minute)),
    );
    for (const { projectId, firstMinute, minutes } of memory.rates) {
      this.projects.set(projectId, newProject(new ProjectRate(projectId, firstMinute, minutes), false));
    }
    for (const spike of memory.openSpikes) {
      const project = this.projects.get(spike.projectId);
      if (project !== undefined) project.spike = spike;
    }
  }

  /** Counts one realtime event. */
  feed(projectId: number, receivedMicros: number, event: string, distinctId: string): void {
    const project = this.projectOf(projectId, receivedMicros);
    this.closeIfOver(project, receivedMicros);
    const isNewMinute = project.rate.add(receivedMicros, project.spike !== undefined);
    // After a restart within a minute, the baseline rate is not known yet.
    if (isNewMinute || project.baselineMinute === neverMinute)
      this.startMinute(project, Math.floor(receivedMicros / microsPerMinute));
    const { spike, rate } = project;
    if (spike === undefined) {
      project.contributors ??= new Contributors();
      project.contributors.add(event, distinctId);
      const limit = this.limit(project.baseline);
      if (rate.perMinute > limit) this.start(project, receivedMicros, limit);
      return;
    }
    spike.contributors.add(event, distinctId);
    spike.isDirty = true;
    if (rate.perMinute <= this.limit(spike.baselinePerMinute)) return;
    spike.lastAboveMicros = Math.max(spike.lastAboveMicros, receivedMicros);
    spike.peakPerMinute = Math.max(spike.peakPerMinute, rate.perMinute);
  }

  /** Closes spikes that have ended, and prunes the history. */
  tick(nowMicros: number): void {
    const minute = Math.floor(nowMicros / microsPerMinute);
    this.observe(minute);
    for (const project of this.projects.values()) {
      project.rate.passTo(nowMicros);
      this.closeIfOver(project, nowMicros);
      if (minute - project.baselineMinute > 1) {
        project.contributors = undefined;
        project.previousContributors = undefined;
        project.rate.forgetBefore(minute - this.options.historyMinutes);
      }
    }
  }

  /** Whether `takeChanges` would return anything. */
  get hasChanges(): boolean {
    if (this.closed.length > 0) return true;
    for (const { isRateDirty, spike } of this.projects.values()) {
      if (isRateDirty || spike?.isDirty === true) return true;
    }
    return false;
  }

  /** The projects and spikes changed since the last call, to be stored. */
  takeChanges(): { rates: ProjectRate[]; spikes: WatchedSpike[] } {
    const rates: ProjectRate[] = [];
    const spikes = this.closed;
    this.closed = [];
    for (const project of this.projects.values()) {
      if (project.isRateDirty) rates.push(project.rate);
      if (project.spike?.isDirty === true) spikes.push(project.spike);
      project.isRateDirty = false;
    }
    for (const spike of spikes) spike.isDirty = false;
    return { rates, spikes };
  }

  private projectOf(projectId: number, receivedMicros: number): Project {
    const known = this.projects.get(projectId);
    if (known !== undefined) return known;
    const firstMinute = Math.floor(receivedMicros / microsPerMinute);
    const project = newProject(new ProjectRate(projectId, firstMinute), true);
    this.projects.set(projectId, project);
    return project;
  }

  private startMinute(project: Project, minute: number): void {
    this.observe(minute);
    project.rate.forgetBefore(minute - this.options.historyMinutes);
    project.previousContributors = minute - project.baselineMinute === 1 ? project.contributors : undefined;
    project.contributors = undefined;
    project.baseline = project.rate.baseline(this.historyBefore(minute), this.options.historyMinutesMin);
    project.baselineMinute = minute;
    project.isRateDirty = true;
  }

  private observe(minute: number): void {
    if (this.observedMinutes.has(minute)) return;
    this.observedMinutes.add(minute);
    for (const old of this.observedMinutes) {
      if (old < minute - this.options.historyMinutes) this.observedMinutes.delete(old);
    }
  }

  private historyBefore(minute: number): number[] {
    const oldest = minute - this.options.historyMinutes;
    return [...this.observedMinutes].filter((observed) => observed >= oldest && observed < minute);
  }

  private limit(baseline: number | undefined): number {
    const { factor, minimumPerMinute } = this.options;
    return baseline === undefined ? Number.POSITIVE_INFINITY : Math.max(baseline * factor, minimumPerMinute);
  }

  private start(project: Project, receivedMicros: number, limit: number): void {
    const { rate, previousContributors } = project;
    const contributors = project.contributors ?? new Contributors();
    if (rate.thisMinute <= limit && previousContributors !== undefined)
      contributors.addAll(previousContributors);
    project.contributors = undefined;
    project.previousContributors = undefined;
    rate.minutes.at(-1)!.isInSpike = true;
    project.isRateDirty = true;
    project.spike = {
      id: undefined,
      projectId: rate.projectId,
      startedMicros: receivedMicros,
      endedMicros: null,
      lastAboveMicros: receivedMicros,
      peakPerMinute: rate.perMinute,
      baselinePerMinute: project.baseline ?? 0,
      contributors,
      isDirty: true,
    };
  }

  private closeIfOver(project: Project, nowMicros: number): void {
    const { spike } = project;
    if (spike === undefined) return;
    const isBaselineNow = nowMicros - spike.startedMicros >= this.options.historyMinutes * microsPerMinute;
    const isOver = nowMicros - spike.lastAboveMicros >= microsPerMinute;
    if (!isOver && !isBaselineNow) return;
    if (isBaselineNow && !isOver) {
      for (const minute of project.rate.minutes) minute.isInSpike = false;
      project.baseline = project.rate.baseline(
        this.historyBefore(project.baselineMinute),
        this.options.historyMinutesMin,
      );
    }
    spike.endedMicros = spike.lastAboveMicros;
    project.isRateDirty = true;
    project.spike = undefined;
    this.closed.push(spike);
  }
}

function newProject(rate: ProjectRate, isRateDirty: boolean): Project {
  return {
    rate,
    isRateDirty,
    spike: undefined,
    baseline: undefined,
    baselineMinute: neverMinute,
    contributors: undefined,
    previousContributors: undefined,
  };
}

/**
 * Counts the most frequent names of a stream in bounded memory (Misra and Gries, 1982). Exact for up to the capacity of
 * names. Above it, counts are at most `total / (capacity + 1)` too low, so frequent names are never missed.
 */
export class HeavyHitters {
  private readonly counts: Map<string, number>;

  constructor(
    private readonly capacity: number,
    counts: Iterable<readonly [string, number]> = [],
  ) {
    this.counts = new Map(counts);
  }

  add(name: string): void {
    const count = this.counts.get(name);
    if (count !== undefined) this.counts.set(name, count + 1);
    else if (this.counts.size < this.capacity) this.counts.set(name, 1);
    else this.subtractOne();
  }

  /** Adds the counts of another counter. */
  addAll(other: HeavyHitters): void {
    for (const [name, count] of other.counts) this.counts.set(name, count + (this.counts.get(name) ?? 0));
    if (this.counts.size <= this.capacity) return;
    const excess = this.top(this.counts.size)[this.capacity]![1];
    for (const [name, count] of this.counts) {
      if (count > excess) this.counts.set(name, count - excess);
      else this.counts.delete(name);
    }
  }

  /** At most `length` names with their counts, most frequent first. */
  top(length: number): [name: string, count: number][] {
    return [...this.counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, length);
  }

  /** Amortized constant time per added name: each call subtracts as many counts as the capacity. */
  private subtractOne(): void {
    for (const [name, count] of this.counts) {
      if (count > 1) this.counts.set(name, count - 1);
      else this.counts.delete(name);
    }
  }
}
