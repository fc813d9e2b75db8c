/** Changes of flags that can change results, for charts. */

import { queryString, request } from "../lib/api.ts";
import { dayAndTime } from "../lib/format.ts";
import { type Resource, useBackgroundResource } from "../lib/resource.ts";
import { project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { type ActivityEntry, getActorName, summarizeEntry } from "./activity.ts";

const w = messages.notes;
const entriesMax = 100;
const refreshMs = 60_000;

/** Only what changes the result of a flag. */
const shownFields = ["active", "filters", "deleted"];

/**
 * The changes of flags since a day such as `2026-11-14`, newest first; undefined reads nothing.
 *
 * @param flagId only this flag's
 */
export function useFlagChanges(since: string | undefined, flagId?: number): Resource<ActivityEntry[]> {
  return useBackgroundResource<ActivityEntry[]>(
    since === undefined ? null : `flag changes ${project.value?.id} ${since} ${flagId}`,
    async (signal) => {
      const query = queryString({
        scope: "FeatureFlag",
        item_id: flagId,
        date_from: since,
        limit: entriesMax,
      });
      const { results } = await request<{ results: ActivityEntry[] }>(
        `/api/projects/${project.value?.id}/activity_log/${query}`,
        { signal },
      );
      return results.filter(
        ({ activity, detail }) =>
          activity !== "updated" || detail.changes.some(({ field }) => shownFields.includes(field)),
      );
    },
    refreshMs,
  );
}

/** "new-checkout: rollout 25 → 100%, Ann Bell, 14 Nov 14:02:05". */
export function flagChangeLine(entry: ActivityEntry): string {
  return w.changeLine(
    entry.detail.name ?? entry.item_id,
    summarizeEntry(entry),
    getActorName(entry),
    dayAndTime(entry.created_at),
  );
}
