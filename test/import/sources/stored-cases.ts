/** Realistic records of each source, and the events that are stored for them. Source: contract, import 2.1 to 2.11. */

import { amplitude, mixpanel, posthog } from "./product-cases.ts";
import { aliases, groups, identifies, pages, rudder, screens, segment, tracks } from "./segment-cases.ts";
import type { StoredCase } from "./stored-case.ts";
import { allEvents, matomo, pageviews, sessions, snowplow, table } from "./table-cases.ts";
import { ga4, plausible, plausibleColumns, plausibleObjects, umami } from "./web-cases.ts";

export type { FileForm, StoredCase } from "./stored-case.ts";

export const storedCases: Readonly<Record<string, StoredCase>> = {
  posthog,
  amplitude,
  mixpanel,
  segment,
  tracks,
  identifies,
  pages,
  screens,
  groups,
  aliases,
  ga4,
  rudder,
  plausibleObjects,
  plausibleColumns,
  umami,
  plausible,
  matomo,
  snowplow,
  pageviews,
  sessions,
  "all events": allEvents,
  table,
};
