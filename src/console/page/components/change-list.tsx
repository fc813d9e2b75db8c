/** Activity entries grouped by day, with a readable diff. */

import type { ComponentChildren } from "preact";
import { date } from "../lib/format.ts";
import { to } from "../lib/router.ts";
import { words } from "../messages/index.ts";
import { type ActivityEntry, changeLines, getActorName, getApproval } from "../model/activity.ts";
import { RelativeTime } from "./primitives.tsx";

const w = words.activity;
const positions: Record<string, (id: string) => string> = {
  FeatureFlag: (id) => `flags/${id}`,
  Cohort: (id) => `cohorts/${id}`,
  Dashboard: (id) => `dashboards/${id}`,
};

export function ChangeList({
  entries,
  isOfOneItem,
  actionsOf,
}: {
  entries: readonly ActivityEntry[];
  isOfOneItem?: boolean;
  actionsOf?: (entry: ActivityEntry) => ComponentChildren;
}) {
  const days = new Map<string, ActivityEntry[]>();
  for (const entry of entries) {
    const day = date(entry.created_at);
    days.set(day, [...(days.get(day) ?? []), entry]);
  }
  return (
    <div class="stack">
      {[...days].map(([day, found]) => (
        <section key={day} class="day">
          <h2>{day}</h2>
          <ul class="lines">
            {found.map((entry) => (
              <li key={entry.id} class="change">
                <div class="row apart">
                  <span>
                    <b>{getActorName(entry)}</b> {w.verbs[entry.activity] ?? entry.activity}{" "}
                    {!isOfOneItem && <ItemName entry={entry} />}
                    <span class="muted">
                      {" "}
                      {getApproval(entry) && `· ${getApproval(entry)} `}·{" "}
                      <RelativeTime at={entry.created_at} />
                    </span>
                  </span>
                  {actionsOf?.(entry)}
                </div>
                {entry.detail.note && <p class="note">{entry.detail.note}</p>}
                <ul class="changes">
                  {changeLines(entry).map((line) => (
                    <li key={line}>{line}</li>
                  ))}
                </ul>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

function ItemName({ entry }: { entry: ActivityEntry }) {
  const name = entry.detail.name || entry.item_id;
  const place = positions[entry.scope];
  return (
    <>
      <span class="muted">{w.scopes[entry.scope] ?? entry.scope}</span>{" "}
      {place && entry.activity !== "deleted" ? <a href={to(place(entry.item_id))}>{name}</a> : name}
    </>
  );
}
