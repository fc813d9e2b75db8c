/** Parses event properties in small batches: parsed values take many times the memory of their JSON. */

import { MemberScanner, type Members, scannedBytesMax } from "../scan/members.ts";
import type { Entry, EventEntry, JournalItem } from "./entry.ts";

/** Events whose properties are held at the same time. */
const eventsAtOnce = 2_000;

/** A batch of entries, without and with properties. */
export interface ReadEntries {
  readonly entries: readonly Entry[];
  /** One per entry; undefined for an event whose properties are not a JSON object. */
  readonly items: readonly (JournalItem | undefined)[];
}

export class PropertyReader {
  private scanner: MemberScanner | undefined;

  /** Reads properties in entry order. Properties of a batch are valid until the next batch is read. */
  *read(all: readonly Entry[]): Generator<ReadEntries> {
    this.scanner ??= new MemberScanner();
    for (let start = 0; start < all.length; ) {
      const entries = all.slice(start, endOfPortion(all, start));
      const events = entries.filter((entry) => entry.kind === "event");
      const members = this.scanner.read(events.map(({ propertiesText }) => propertiesText)).values();
      const items = entries.map((entry) =>
        entry.kind === "event" ? withProperties(entry, members.next().value) : entry,
      );
      yield { entries, items };
      start += entries.length;
    }
  }
}

/** Batch size; at least 1. */
function endOfPortion(entries: readonly Entry[], start: number): number {
  let bytes = 0;
  let end = start;
  for (; end < entries.length && end - start < eventsAtOnce; end++) {
    const entry = entries[end]!;
    if (entry.kind === "event") bytes += entry.propertiesText.length;
    if (bytes > scannedBytesMax && end > start) break;
  }
  return end;
}

function withProperties(entry: EventEntry, properties: Members | undefined): JournalItem | undefined {
  if (properties === undefined) return undefined;
  return {
    kind: "event",
    seq: entry.seq,
    projectId: entry.projectId,
    uuid: entry.uuid,
    event: entry.event,
    distinctId: entry.distinctId,
    timeMicros: entry.timeMicros,
    receivedMicros: entry.receivedMicros,
    historical: entry.historical,
    mode: entry.mode,
    properties,
  };
}
