/** What the lookup files of an import say about the records of its events. */

import type { JsonObject } from "../../lib/json.ts";
import type { MapContext } from "../map/formats.ts";
import { idOf } from "../map/loose-json.ts";
import { type UmamiLookup, umamiDatum } from "../map/umami.ts";
import { objectFrom } from "../read/json-text.ts";
import type { LookupStore } from "./lookup-store.ts";

/** Members of a session that say nothing about its events. */
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
  const data = dataOf(store.take("event_data", eventId));
  for (const row of store.take("revenue", eventId))
    for (const name of ["revenue", "currency"] as const)
      if (!Object.hasOwn(data, name) && idOf(row[name]) !== undefined)
        data[name] = name === "revenue" ? numberOf(idOf(row[name])!) : row[name]!;
  const person = dataOf(store.take("session_data", sessionId));
  const session = mergedRow(store.take("session", sessionId));
  return {
    properties: data,
    ...(Object.keys(person).length > 0 ? { person } : {}),
    ...(session === undefined
      ? {}
      : { session: objectFrom(Object.entries(session).filter(([name]) => !sessionOwn.has(name))) }),
  };
}

function dataOf(rows: readonly JsonObject[]): JsonObject {
  return objectFrom(rows.map(umamiDatum).filter((datum) => datum !== undefined));
}

/** Tables write numbers as text. */
function numberOf(text: string): number | string {
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

/** Of several rows of one id the values of the last count. */
function mergedRow(rows: readonly JsonObject[]): JsonObject | undefined {
  if (rows.length <= 1) return rows[0];
  return objectFrom(
    rows.flatMap((row) => Object.entries(row)).filter(([, value]) => value !== null && value !== ""),
  );
}
