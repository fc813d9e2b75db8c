/** Visits as a program would find them, event by event. */

import type { TestEvent } from "../../support/event-store.ts";

const minute = 60_000;
const day = 1_440 * minute;
const uncounted = ["$feature_flag_called", "$identify"];

interface Visit {
  ids: string[];
  times: number[];
  views: number;
}

/** The figures of events of distinct ids without persons. */
export function expectedFigures(events: readonly TestEvent[]) {
  const ordered = events
    .map((event, index) => ({ event, index }))
    .sort((one, two) => one.event.time! - two.event.time! || one.index - two.index);
  const sessions = new Map<string, Visit>();
  const open = new Map<string, { visit: Visit; started: number; last: number; day: number }>();
  const visits: Visit[] = [];
  for (const { event } of ordered) {
    if (uncounted.includes(event.event!)) continue;
    const { $session_id: session = "" } = event.properties as { $session_id?: string };
    const id = event.distinctId!;
    const time = event.time!;
    let visit = session === "" ? undefined : sessions.get(session);
    if (session === "") {
      const known = open.get(id);
      const isGap = known === undefined || time - known.last > 30 * minute;
      const started = isGap ? time : known.started;
      const days = time - started > day ? Math.floor((time - started - 0.001) / day) : 0;
      visit = isGap || days !== known.day ? undefined : known.visit;
      if (visit === undefined) {
        visit = { ids: [], times: [], views: 0 };
        visits.push(visit);
      }
      open.set(id, { visit, started, last: time, day: days });
    } else if (visit === undefined) {
      visit = { ids: [], times: [], views: 0 };
      visits.push(visit);
      sessions.set(session, visit);
    }
    visit.ids.push(id);
    visit.times.push(time);
    if (event.event === "$pageview") visit.views += 1;
  }
  const counted = visits.filter(({ views }) => views > 0);
  const durations = counted.map(({ times }) => Math.min(Math.max(...times) - Math.min(...times), day));
  return {
    visitors: new Set(counted.map(({ ids }) => ids[0])).size,
    views: counted.reduce((sum, { views }) => sum + views, 0),
    visits: counted.length,
    seconds: durations.reduce((sum, ms) => sum + ms / 1_000, 0),
    bounces: counted.filter(({ views }, index) => views === 1 && durations[index]! < 10_000).length,
  };
}
