/** Events in API responses. */

export interface StoredEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  timestamp: string;
  received_at?: string;
  properties: Record<string, unknown>;
  historical?: boolean;
  is_cut?: boolean;
  person?: { uuid?: string } | null;
  seq?: number;
}

const shownMax = 6;
const hiddenFirst =
  /^\$(lib|ip|geoip|sdk|insert_id|session|window|device|time|sent|raw|active_feature|feature\/)/;

/** The most informative properties, in one line. */
export function shortProperties(properties: Record<string, unknown>): string {
  const names = Object.keys(properties).filter((name) => !hiddenFirst.test(name));
  names.sort((a, b) => Number(a.startsWith("$")) - Number(b.startsWith("$")));
  return names
    .slice(0, shownMax)
    .map((name) => {
      const value = properties[name];
      return `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`;
    })
    .join(", ");
}

/** A curl command that sends the same event again. */
export function asCurl(event: StoredEvent, host: string, token: string): string {
  const body = JSON.stringify({
    api_key: token,
    event: event.event,
    distinct_id: event.distinct_id,
    properties: event.properties,
  });
  return `curl ${host}/capture/ -d '${body.replaceAll("'", "'\\''")}'`;
}

/** SQL that finds the event. */
export function asSql(event: StoredEvent): string {
  return `SELECT * FROM events WHERE uuid = '${event.uuid}'`;
}

const minuteMs = 60_000;
export const minutesShown = 30;

export interface MinuteRow {
  /** Minutes since 1970. */
  minute: number;
  events: number;
}

/** Counts of the last minutes, the latest last; minutes without events are 0. */
export function fillMinutes(rows: readonly MinuteRow[], now: number): { at: number; events: number }[] {
  const counts = new Map(rows.map(({ minute, events }) => [minute, events]));
  // The server's clock may be ahead of this one.
  const latest = Math.max(Math.floor(now / minuteMs), ...counts.keys());
  return Array.from({ length: minutesShown }, (_, index) => {
    const minute = latest - minutesShown + 1 + index;
    return { at: minute * minuteMs, events: counts.get(minute) ?? 0 };
  });
}
