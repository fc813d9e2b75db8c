/** Flag usage derived from events: `$feature_flag_called` and feature views. */

import type { JournalItem } from "../../journal/entry.ts";

export interface ProjectUsage {
  projectId: number;
  /** The latest call of each flag, epoch microseconds. */
  calls: { key: string; atMicros: number }[];
  /** Keys of flags whose feature was viewed or used. */
  views: string[];
}

/** Maximum keys per project and step: limits the effect of malicious events. */
const keysMax = 10_000;
/** Maximum length of a flag's key. */
const keyLengthMax = 400;

/** Collects flag usage, one entry per project with events. Source: contract, management-api 3.8 and 5.13. */
export class FlagUsageTally {
  private readonly projects = new Map<number, { calls: Map<string, number>; views: Set<string> }>();

  add(items: readonly JournalItem[]): void {
    for (const item of items) {
      if (item.kind !== "event") continue;
      let usage = this.projects.get(item.projectId);
      if (usage === undefined) {
        usage = { calls: new Map(), views: new Set() };
        this.projects.set(item.projectId, usage);
      }
      if (item.event === "$feature_flag_called") {
        const key = item.properties.valueOf("$feature_flag");
        if (!isKey(key) || usage.calls.size >= keysMax) continue;
        // A call with a future timestamp would hide all later calls.
        const atMicros = Math.min(item.timeMicros, item.receivedMicros);
        usage.calls.set(key, Math.max(usage.calls.get(key) ?? 0, atMicros));
      } else if (item.event === "$feature_view" || item.event === "$feature_interaction") {
        const key = item.properties.valueOf("feature_flag");
        if (isKey(key) && usage.views.size < keysMax) usage.views.add(key);
      }
    }
  }

  get usage(): ProjectUsage[] {
    return [...this.projects].map(([projectId, { calls, views }]) => ({
      projectId,
      calls: [...calls].map(([key, atMicros]) => ({ key, atMicros })),
      views: [...views],
    }));
  }
}

function isKey(key: unknown): key is string {
  return typeof key === "string" && key.length <= keyLengthMax;
}
