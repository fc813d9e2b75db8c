/** Events of the last minutes, one bar per minute, before a list of events. */

import { request } from "../lib/api.ts";
import { timeOfDay } from "../lib/format.ts";
import { useBackgroundResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { fillMinutes, type MinuteRow, minutesShown } from "../model/events.ts";

const w = messages.live;
const refreshMs = 10_000;

/** @param conditions SQL on events `e` */
export function EventMinutes({ conditions, isLive }: { conditions: readonly string[]; isLive: boolean }) {
  const recent = [
    `e.timestamp >= now() - INTERVAL ${minutesShown} MINUTE`,
    "e.timestamp <= now()",
    ...conditions,
  ];
  const statement = `SELECT floor(epoch(e.timestamp) / 60)::INTEGER AS minute, count(*)::INTEGER AS events
FROM events e WHERE ${recent.join(" AND ")} GROUP BY ALL`;
  const found = useBackgroundResource<{ rows: MinuteRow[] }>(
    `minutes ${project.value?.id} ${statement}`,
    (signal) => request(inProject("query/"), { method: "POST", body: { query: statement }, signal }),
    isLive ? refreshMs : undefined,
  );
  if (found.data === undefined) return found.failure ? <p class="muted">{w.minutesUnavailable}</p> : null;
  const minutes = fillMinutes(found.data.rows, found.readAt);
  const most = Math.max(1, ...minutes.map(({ events }) => events));
  const total = minutes.reduce((sum, { events }) => sum + events, 0);
  const summary = w.minutesSummary(total, minutesShown);
  return (
    <figure class="event-minutes" aria-label={w.minutes}>
      <div role="img" aria-label={summary}>
        {minutes.map(({ at, events }) => (
          <span key={at} title={w.minute(timeOfDay(at), events)}>
            <span style={{ blockSize: `${(events / most) * 100}%` }} />
          </span>
        ))}
      </div>
      <figcaption class="muted">{summary}</figcaption>
    </figure>
  );
}
