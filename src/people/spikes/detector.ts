/**
 * Notices when a project receives far more realtime events than it usually does.
 *
 * A spike begins when the events of the last 60 seconds are more than `factor` times the usual number per minute and
 * more than the minimum. It ends when the rate has not been above that for a minute; then it ended at the last event
 * that saw it above. A rate that stays for as long as the history reaches is the new usual one, and ends it too.
 *
 * Minutes in which nothing at all is known to have been received (Flagkeep was not running) are not history: else
 * the first minute after a long stop would look like a spike. Pure: times come in with events and ticks.
 * Source: contract, README "Spike detection" and the row `GET …/spikes/`.
 */

import { shownText } from "../identity/warning.ts";
import { HeavyHitters } from "./heavy-hitters.ts";
import { type MinuteCount, microsPerMinute, ProjectRate } from "./project-rate.ts";

export interface SpikeSettings {
  /** A spike begins above this many times the usual rate. */
  factor: number;
  /** And above this many events per minute. */
  minimumPerMinute: number;
  /** How many minutes back the usual rate looks. */
  historyMinutes: number;
  /** Minutes of history without which nothing is a spike. */
  historyMinutesMin: number;
}

/** A spike as it is reported and stored. */
export interface Spike {
  id: number;
  projectId: number;
  startedMicros: number;
  /** Null while it lasts. */
  endedMicros: number | null;
  peakPerMinute: number;
  usualPerMinute: number;
  /** Most frequent first. */
  events: { event: string; count: number }[];
  distinctIds: { distinctId: string; count: number }[];
}

/** A spike that began or ended. */
export interface SpikeSignal extends Spike {
  kind: "began" | "ended";
}

/** A spike while the detector watches it. */
export interface WatchedSpike {
  /** Unknown until it is stored. */
  id: number | undefined;
  projectId: number;
  startedMicros: number;
  endedMicros: number | null;
  lastAboveMicros: number;
  peakPerMinute: number;
  usualPerMinute: number;
  contributors: Contributors;
  /** It differs from what is stored. */
  isDirty: boolean;
}

/** What the detector starts from after a restart. */
export interface DetectorMemory {
  rates: { projectId: number; firstMinute: number; minutes: MinuteCount[] }[];
  openSpikes: WatchedSpike[];
}

const neverMinute = -1;

/** Names told apart per project; see `HeavyHitters` for what happens beyond. */
const contributorsRoom = 100;

/** The names that events and distinct ids of a span of time have. */
export class Contributors {
  constructor(
    readonly events = new HeavyHitters(contributorsRoom),
    readonly distinctIds = new HeavyHitters(contributorsRoom),
  ) {}

  static restored(events: [string, number][], distinctIds: [string, number][]): Contributors {
    return new Contributors(
      new HeavyHitters(contributorsRoom, events),
      new HeavyHitters(contributorsRoom, distinctIds),
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

/** Names may have any length; long ones are told apart, and shown, by their beginning and a hash. */
function boundedName(name: string): string {
  const shown = shownText(name);
  return shown === name ? name : `${shown} (${Bun.hash.xxHash64(name).toString(16)})`;
}

interface Project {
  rate: ProjectRate;
  isRateDirty: boolean;
  spike: WatchedSpike | undefined;
  /** What a spike must exceed in the present minute; undefined without enough history. */
  usual: number | undefined;
  usualMinute: number;
  contributors: Contributors | undefined;
  previousContributors: Contributors | undefined;
}

export class SpikeDetector {
  private readonly projects = new Map<number, Project>();
  private readonly observedMinutes: Set<number>;
  private closed: WatchedSpike[] = [];

  constructor(
    private readonly settings: SpikeSettings,
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
    // After a restart in the middle of a minute the usual rate is not known yet.
    if (isNewMinute || project.usualMinute === neverMinute)
      this.beginMinute(project, Math.floor(receivedMicros / microsPerMinute));
    const { spike, rate } = project;
    if (spike === undefined) {
      project.contributors ??= new Contributors();
      project.contributors.add(event, distinctId);
      const limit = this.limit(project.usual);
      if (rate.perMinute > limit) this.begin(project, receivedMicros, limit);
      return;
    }
    spike.contributors.add(event, distinctId);
    spike.isDirty = true;
    if (rate.perMinute <= this.limit(spike.usualPerMinute)) return;
    spike.lastAboveMicros = Math.max(spike.lastAboveMicros, receivedMicros);
    spike.peakPerMinute = Math.max(spike.peakPerMinute, rate.perMinute);
  }

  /** Closes spikes that are over, and forgets what is too old to matter. */
  tick(nowMicros: number): void {
    const minute = Math.floor(nowMicros / microsPerMinute);
    this.observe(minute);
    for (const project of this.projects.values()) {
      project.rate.passTo(nowMicros);
      this.closeIfOver(project, nowMicros);
      if (minute - project.usualMinute > 1) {
        project.contributors = undefined;
        project.previousContributors = undefined;
        project.rate.forgetBefore(minute - this.settings.historyMinutes);
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

  /** The projects and spikes that changed since the last call, for the store to write. */
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

  private beginMinute(project: Project, minute: number): void {
    this.observe(minute);
    project.rate.forgetBefore(minute - this.settings.historyMinutes);
    project.previousContributors = minute - project.usualMinute === 1 ? project.contributors : undefined;
    project.contributors = undefined;
    project.usual = project.rate.usual(this.historyBefore(minute), this.settings.historyMinutesMin);
    project.usualMinute = minute;
    project.isRateDirty = true;
  }

  private observe(minute: number): void {
    if (this.observedMinutes.has(minute)) return;
    this.observedMinutes.add(minute);
    for (const old of this.observedMinutes) {
      if (old < minute - this.settings.historyMinutes) this.observedMinutes.delete(old);
    }
  }

  private historyBefore(minute: number): number[] {
    const oldest = minute - this.settings.historyMinutes;
    return [...this.observedMinutes].filter((observed) => observed >= oldest && observed < minute);
  }

  private limit(usual: number | undefined): number {
    const { factor, minimumPerMinute } = this.settings;
    return usual === undefined ? Number.POSITIVE_INFINITY : Math.max(usual * factor, minimumPerMinute);
  }

  private begin(project: Project, receivedMicros: number, limit: number): void {
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
      usualPerMinute: project.usual ?? 0,
      contributors,
      isDirty: true,
    };
  }

  private closeIfOver(project: Project, nowMicros: number): void {
    const { spike } = project;
    if (spike === undefined) return;
    const isUsualNow = nowMicros - spike.startedMicros >= this.settings.historyMinutes * microsPerMinute;
    const isOver = nowMicros - spike.lastAboveMicros >= microsPerMinute;
    if (!isOver && !isUsualNow) return;
    if (isUsualNow && !isOver) {
      for (const minute of project.rate.minutes) minute.isInSpike = false;
      project.usual = project.rate.usual(
        this.historyBefore(project.usualMinute),
        this.settings.historyMinutesMin,
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
    usual: undefined,
    usualMinute: neverMinute,
    contributors: undefined,
    previousContributors: undefined,
  };
}
