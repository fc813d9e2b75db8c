/** Data from the lookup files of an import for the records of its events. */

import type { JsonObject } from "../../lib/json/value.ts";
import type { MapContext } from "../map/formats.ts";
import { getId, toExactNumber } from "../map/lenient-json.ts";
import { type UmamiLookup, umamiDatum } from "../map/umami.ts";
import { objectFrom } from "../read/json-text.ts";
import type { LookupStore } from "./lookup-store.ts";

/** Members of a session that do not apply to its events. */
const sessionOwn = new Set(["session_id", "website_id", "created_at"]);

export function lookupContext(store: LookupStore): Omit<MapContext, "table"> {
  return {
    umami: (eventId, sessionId) => umamiLookup(store, eventId, sessionId),
    heapUser: (userId) => mergedRow(store.take("users", userId)),
  };
}

function umamiLookup(
  store: LookupStore,
  eventId: string | undefined,
  sessionId: string | undefined,
): UmamiLookup {
  const data = getData(store.take("event_data", eventId));
  for (const row of store.take("revenue", eventId))
    for (const name of ["revenue", "currency"] as const)
      if (!Object.hasOwn(data, name) && getId(row[name]) !== undefined)
        data[name] = name === "revenue" ? toExactNumber(getId(row[name])!) : row[name]!;
  const person = getData(store.take("session_data", sessionId));
  const session = mergedRow(store.take("session", sessionId));
  return {
    properties: data,
    ...(Object.keys(person).length > 0 ? { person } : {}),
    ...(session === undefined
      ? {}
      : { session: objectFrom(Object.entries(session).filter(([name]) => !sessionOwn.has(name))) }),
  };
}

function getData(rows: readonly JsonObject[]): JsonObject {
  return objectFrom(rows.map(umamiDatum).filter((datum) => datum !== undefined));
}

/** With several rows of one ID the last values count. */
function mergedRow(rows: readonly JsonObject[]): JsonObject | undefined {
  if (rows.length <= 1) return rows[0];
  return objectFrom(
    rows.flatMap((row) => Object.entries(row)).filter(([, value]) => value !== null && value !== ""),
  );
}
