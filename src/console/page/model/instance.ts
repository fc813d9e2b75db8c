/** Server status for operators. */

export interface InstanceStatus {
  state: string;
  version: string;
  /** The server's base URL, as it derives it. */
  url: string | null;
  started_at: string | null;
  uptime_seconds: number | null;
  events_per_second: number;
  journal: {
    lane: string;
    last_seq: number;
    applied_seq: number;
    lag_entries: number;
    queued_bytes: number;
  }[];
  roles: { role: string; ready: boolean; reason: string | null }[];
  engine: {
    up: boolean;
    restarts: number;
    rebuilding: { done: number; total: number } | null;
    trouble: { message: string; hint: string } | null;
  };
  disk: Record<string, number>;
  volume: { free_bytes: number; total_bytes: number };
  given_up: { lane: string; first_seq: number; last_seq: number; reason: string; at: string }[];
  last_backup: {
    created_at: string | null;
    verified_at: string | null;
    failed_at: string | null;
    error: string | null;
  } | null;
  warnings: { project_id: number; type: string; count: number }[];
  spikes: {
    id: number;
    project_id: number;
    started_at: string;
    peak_per_minute: number;
    usual_per_minute: number;
  }[];
}

/** Acknowledged events that are not loaded yet. */
export function getWaiting({ journal }: InstanceStatus): number {
  return journal.reduce((sum, { lag_entries: lag }) => sum + lag, 0);
}

/** Why events are rejected; undefined while they are accepted. */
export function captureProblem({ roles }: InstanceStatus): string | undefined {
  return roles.find(({ role, ready }) => role === "capture" && !ready)?.reason ?? undefined;
}

/** Of the samples of an hour. */
export type Fold = (...values: number[]) => number;

/** One bar per hour, of 12 samples. */
const barCount = 24;
const samplesPerBar = 12;

/** The largest value of each hour, or what `fold` makes of its samples; the newest at the right. */
export function foldSamples(values: readonly number[], fold: Fold = Math.max): number[] {
  const bars: number[] = new Array(barCount).fill(0);
  for (let end = values.length, bar = barCount - 1; end > 0 && bar >= 0; end -= samplesPerBar, bar--)
    bars[bar] = fold(...values.slice(Math.max(0, end - samplesPerBar), end));
  return bars;
}
