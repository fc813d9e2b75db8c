/** Marks below the axis of a chart: changes of flags, and notes of users. */

import { useState } from "preact/hooks";
import { to } from "../lib/router.ts";
import { readPreference, savePreference } from "../lib/storage.ts";
import { bucketAt } from "../lib/wall-time.ts";
import { messages } from "../messages/index.ts";
import type { ActivityEntry } from "../model/activity.ts";
import { flagChangeLine, useFlagChanges } from "../model/flag-changes.ts";
import { ChartNotes } from "./chart-notes.tsx";
import type { MenuItem } from "./menu.tsx";

const w = messages.notes;
const shownMax = 5;
const preference = "flag-changes";

/** Whether charts show changes of flags, remembered in this browser, and the menu entry that changes it. */
export function useFlagMarks(): { isShown: boolean; item: MenuItem } {
  const [isShown, setShown] = useState(readPreference(preference) !== "off");
  const toggle = () => {
    savePreference(preference, isShown ? "off" : null);
    setShown(!isShown);
  };
  return { isShown, item: [isShown ? w.hideChanges : w.showChanges, toggle] };
}

/** @param buckets starts of the buckets, as days or wall times. @param names of the buckets on the axis */
export function ChartMarks({
  buckets,
  names,
  hasFlagChanges,
  flagId,
}: {
  buckets: readonly string[];
  names: readonly string[];
  hasFlagChanges: boolean;
  /** Only changes of this flag. */
  flagId?: number;
}) {
  const changes = useFlagChanges(hasFlagChanges ? buckets[0]?.slice(0, 10) : undefined, flagId);
  return (
    <>
      {hasFlagChanges && (
        <FlagMarks
          changes={changes.data ?? []}
          buckets={buckets}
          names={names}
          history={
            flagId === undefined
              ? to("activity", { kind: "FeatureFlag" })
              : to(`flags/${flagId}`, { tab: "history" })
          }
        />
      )}
      <ChartNotes buckets={buckets} names={names} />
    </>
  );
}

/** One mark per bucket with changes. */
function FlagMarks({
  changes,
  buckets,
  names,
  history,
}: {
  changes: readonly ActivityEntry[];
  buckets: readonly string[];
  names: readonly string[];
  /** Address of the list of changes. */
  history: string;
}) {
  const marks = Map.groupBy(changes, ({ created_at: at }) => bucketAt(at, buckets));
  marks.delete(-1);
  if (marks.size === 0) return null;
  return (
    <ul class="flag-marks">
      {[...marks].map(([position, entries]) => (
        <li key={position} style={{ "--position": `${position / Math.max(1, buckets.length - 1)}` }}>
          <a href={history} aria-label={w.changesOn(entries.length, names[position]!)}>
            {entries.length}
          </a>
          <span class="mark-tip" role="tooltip">
            {entries.slice(0, shownMax).map((entry) => (
              <span key={entry.id}>{flagChangeLine(entry)}</span>
            ))}
            {entries.length > shownMax && <span>{w.more(entries.length - shownMax)}</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}
