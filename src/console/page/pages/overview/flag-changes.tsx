/** Changes of flags in the range as a list. */

import { date } from "../../lib/format.ts";
import type { Resource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { messages } from "../../messages/index.ts";
import type { ActivityEntry } from "../../model/activity.ts";
import { flagChangeLine } from "../../model/flag-changes.ts";
import { Panel } from "./panel.tsx";

const w = messages.overview;
const shownMax = 5;

export function FlagChanges({ changes }: { changes: Resource<ActivityEntry[]> }) {
  return (
    <section class="overview-panel" aria-label={w.flagChanges}>
      <div class="panel-head">
        <h2>{w.flagChanges}</h2>
      </div>
      <Panel resource={changes} rows={2}>
        {(entries) =>
          entries.length === 0 ? (
            <p class="muted">{w.noChanges}</p>
          ) : (
            <ul class="plain-list">
              {entries.slice(0, shownMax).map((entry) => (
                <li key={entry.id} title={date(entry.created_at)}>
                  <a href={to(`flags/${entry.item_id}`)}>{flagChangeLine(entry)}</a>
                </li>
              ))}
            </ul>
          )
        }
      </Panel>
    </section>
  );
}
