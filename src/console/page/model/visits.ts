/** Visits of a person: events of one session, or without gaps of more than 30 minutes. */

import type { StoredEvent } from "./events.ts";

export interface Visit {
  /** Uuid of its latest event. */
  id: string;
  /** Start and end, ms. */
  from: number;
  to: number;
  /** Page views. */
  pages: number;
  /** Source of the visit: campaign source or referring host; undefined without one. */
  source: string | undefined;
  /** The latest first. */
  events: StoredEvent[];
}

const gapMs = 30 * 60_000;
const viewEvents = new Set(["$pageview", "$screen"]);

const getText = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

function getSource({ properties }: StoredEvent): string | undefined {
  const host = getText(properties.$referring_domain)?.replace(/^www\./, "");
  return getText(properties.utm_source) ?? (host === "$direct" ? undefined : host);
}

/** @param events the latest first, as the API lists them */
export function toVisits(events: readonly StoredEvent[]): Visit[] {
  const visits: Visit[] = [];
  for (const event of events) {
    const at = Date.parse(event.timestamp);
    const sessionId = getText(event.properties.$session_id);
    const visit = visits.find(({ events: own, from }) => {
      const known = getText(own[0]!.properties.$session_id);
      return sessionId === undefined && known === undefined ? from - at <= gapMs : known === sessionId;
    });
    if (visit === undefined) {
      visits.push({ id: event.uuid, from: at, to: at, pages: 0, source: undefined, events: [] });
    }
    const own = visit ?? visits.at(-1)!;
    own.events.push(event);
    own.from = at;
    own.source = getSource(event) ?? own.source;
    if (viewEvents.has(event.event)) own.pages += 1;
  }
  return visits;
}
