/** Activity entries as sentences, grouped by day, with what changed side by side. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { date } from "../lib/format.ts";
import { to } from "../lib/router.ts";
import { messages } from "../messages/index.ts";
import {
  type ActivityEntry,
  collapseEntries,
  getActorName,
  getApproval,
  getSentence,
  sideBySide,
} from "../model/activity.ts";
import { RelativeTime } from "./primitives.tsx";

const w = messages.activity;
const positions: Record<string, (id: string) => string> = {
  FeatureFlag: (id) => `flags/${id}`,
  Experiment: (id) => `experiments/${id}`,
  Cohort: (id) => `cohorts/${id}`,
  Dashboard: (id) => `dashboards/${id}`,
};

interface EntryProps {
  /** The item is clear from the page: it is not named. */
  isOfOneItem: boolean;
  actionsOf: ((entry: ActivityEntry) => ComponentChildren) | undefined;
}

export function ChangeList({
  entries,
  isOfOneItem = false,
  actionsOf: getActions,
}: Partial<EntryProps> & { entries: readonly ActivityEntry[] }) {
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
            {collapseEntries(found).map((group) =>
              group.length === 1 ? (
                <Entry
                  key={group[0]!.id}
                  entry={group[0]!}
                  isOfOneItem={isOfOneItem}
                  actionsOf={getActions}
                />
              ) : (
                <Group key={group[0]!.id} entries={group} isOfOneItem={isOfOneItem} actionsOf={getActions} />
              ),
            )}
          </ul>
        </section>
      ))}
    </div>
  );
}

/** Equal entries in one line; the single ones on demand. */
function Group({ entries, ...props }: EntryProps & { entries: readonly ActivityEntry[] }) {
  const [isOpen, setOpen] = useState(false);
  const first = entries[0]!;
  const items = new Set(entries.map(({ item_id: id }) => id)).size;
  return (
    <li class="change">
      <span>
        <b>{getActorName(first)}</b> {getSentence(first).verb}{" "}
        {(!props.isOfOneItem || items > 1) && w.changesSummary(items, first.scope)}
        <span class="muted">
          {" "}
          · <RelativeTime at={first.created_at} />
        </span>
      </span>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>{w.show(entries.length)}</summary>
        {isOpen && (
          <ul class="lines">
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} {...props} />
            ))}
          </ul>
        )}
      </details>
    </li>
  );
}

function Entry({ entry, isOfOneItem, actionsOf: getActions }: EntryProps & { entry: ActivityEntry }) {
  const { verb, isSwitch, lines } = getSentence(entry);
  const approval = getApproval(entry);
  return (
    <li class="change">
      <div class="row apart">
        <span>
          <b>{getActorName(entry)}</b> {verb}{" "}
          {!isOfOneItem && <ItemName entry={entry} hasScope={!isSwitch} />}
          <span class="muted">
            {" "}
            {approval && `· ${approval} `}· <RelativeTime at={entry.created_at} />
          </span>
        </span>
        {getActions?.(entry)}
      </div>
      {entry.detail.note && <p class="note">{entry.detail.note}</p>}
      <ChangeLines lines={lines} />
      {lines.length > 0 && entry.activity === "updated" && <Comparison entry={entry} />}
    </li>
  );
}

/** The values before and after, side by side. */
function Comparison({ entry }: { entry: ActivityEntry }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{w.compare}</summary>
      {isOpen && (
        <table class="comparison">
          <thead>
            <tr>
              <th scope="col">{w.before}</th>
              <th scope="col">{w.after}</th>
            </tr>
          </thead>
          {sideBySide(entry).map(({ field, before, after }) => (
            <tbody key={field}>
              <tr>
                <th scope="rowgroup" colSpan={2}>
                  {field}
                </th>
              </tr>
              <tr>
                <Lines lines={before} others={after} name="removed" />
                <Lines lines={after} others={before} name="added" />
              </tr>
            </tbody>
          ))}
        </table>
      )}
    </details>
  );
}

/** Marks lines that are missing on the other side. */
function Lines({
  lines,
  others,
  name,
}: {
  lines: readonly string[];
  others: readonly string[];
  name: "removed" | "added";
}) {
  const Mark = name === "removed" ? "del" : "ins";
  return (
    <td>
      {lines.length === 0 && <span class="muted">{messages.frame.none}</span>}
      {lines.map((line, index) => (
        <div key={index}>{others.includes(line) ? line : <Mark>{line}</Mark>}</div>
      ))}
    </td>
  );
}

function ItemName({ entry, hasScope }: { entry: ActivityEntry; hasScope: boolean }) {
  const name = entry.detail.name || entry.item_id;
  const position = positions[entry.scope];
  return (
    <>
      {hasScope && <span class="muted">{w.scopes[entry.scope] ?? entry.scope} </span>}
      {position && entry.activity !== "deleted" ? <a href={to(position(entry.item_id))}>{name}</a> : name}
    </>
  );
}

export function ChangeLines({ lines }: { lines: readonly string[] }) {
  return (
    <ul class="changes">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}
