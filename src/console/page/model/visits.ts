/** Visits of a person: events of one session, or without gaps of more than 30 minutes. */

import { channelOf, directReferrer } from "../../../events/web/channels.ts";
import type { StoredEvent } from "./events.ts";

export interface Visit {
  /** Uuid of its latest event. */
  id: string;
  /** Start and end, ms. */
  from: number;
  to: number;
  /** Page views. */
  pages: number;
  /** As in Overview: decided by the first event. */
  channel: string;
  /** The latest first. */
  events: StoredEvent[];
}

const gapMs = 30 * 60_000;
const viewEvents = new Set(["$pageview", "$screen"]);

const getText = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

const utmNames = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"];
const adClickNames = ["gclid", "msclkid"];
const withoutWww = (host: string) => host.replace(/^www\./, "");

function getChannel({ properties }: StoredEvent): string {
  const sent = (name: string) => getText(properties[name]);
  const referrer = sent("$referring_domain");
  const host = sent("$host");
  const isDirect =
    referrer === undefined || (host !== undefined && withoutWww(referrer) === withoutWww(host));
  return channelOf({
    referrer: isDirect ? directReferrer : withoutWww(referrer),
    medium: sent("utm_medium") ?? "",
    hasAdClick: adClickNames.some((name) => sent(name) !== undefined),
    hasUtm: utmNames.some((name) => sent(name) !== undefined),
  });
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
      visits.push({ id: event.uuid, from: at, to: at, pages: 0, channel: "", events: [] });
    }
    const own = visit ?? visits.at(-1)!;
    own.events.push(event);
    own.from = at;
    // The last one looked at is the first of the visit.
    own.channel = getChannel(event);
    if (viewEvents.has(event.event)) own.pages += 1;
  }
  return visits;
}
