/** The columns of the table `events`, and what a journal entry gives for each. */

import type { StorableEvent } from "../journal/entry.ts";
import type { AppendColumn, AppendTable } from "./append.ts";

/** In the order of the table; see `migrations/`. */
const columns: readonly AppendColumn<StorableEvent>[] = [
  { kind: "integer", of: (event) => event.projectId },
  { kind: "boolean", of: (event) => event.historical },
  { kind: "bigint", of: (event) => event.seq },
  { kind: "uuid", of: (event) => event.uuid },
  { kind: "bigint", of: (event) => uuidTime(event.uuid) },
  { kind: "text", of: (event) => event.event },
  { kind: "text", of: (event) => event.distinctId },
  { kind: "bigint", of: (event) => event.timeMicros },
  { kind: "bigint", of: (event) => event.receivedMicros },
  { kind: "text", of: (event) => event.mode },
  { kind: "text", of: (event) => event.elementsChain },
  { kind: "text", of: (event) => event.propertiesText },
];

const emptyObject = new TextEncoder().encode("{}");

/** Fillers belong to no project: their number is negative. What the file is sorted by stays. */
export const eventTable: AppendTable<StorableEvent> = {
  name: "events",
  columns,
  mayHaveMore: true,
  filler: (event) => ({
    ...event,
    projectId: -event.projectId,
    event: "",
    distinctId: "",
    elementsChain: null,
    propertiesText: emptyObject,
  }),
};

/**
 * The milliseconds since 1970 inside a version 7 uuid, its first 48 bits; null for uuids of other versions.
 *
 * The search for duplicates reads only row groups of that time.
 */
export function uuidTime(uuid: string): number | null {
  if (uuid[14] !== "7") return null;
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}
