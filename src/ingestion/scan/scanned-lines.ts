/** The lines of a usual request, from its bytes: what `request-entries.ts` makes of any request, for nearly all of them. */

import { type EntryText, EntryWriter } from "../../journal/entry.ts";
import { EntryList, type NoteCount } from "../entry-list.ts";
import { normalize, type RequestFacts } from "../normalize.ts";
import { parseEvent } from "../payload.ts";
import { type LineFacts, type ScannedBody, Scanner } from "./scanner.ts";

/** Events of one request that are not usual; if there are more, all of them go the slow road, which takes rests. */
const unusualMax = 200;
/** Instants and differences that are whole numbers. */
const microsMax = 9e15;

let scanner: Scanner | undefined;

/** Reads a request. @returns undefined when it is not usual; otherwise it is good until the next one is read. */
export function scan(bytes: Uint8Array): ScannedBody | undefined {
  // Made at the first request: most processes never get one.
  scanner ??= new Scanner();
  return scanner.read(bytes);
}

/**
 * The entries of a request, with the notes about its events.
 *
 * @returns undefined when too much of it is not usual.
 */
export function scannedLines(
  body: ScannedBody,
  projectId: number,
  facts: RequestFacts,
  notes?: NoteCount,
): EntryText[] | undefined {
  const { receivedMicros, sentAtMicros, added, makeUuid } = facts;
  if (Math.abs((sentAtMicros ?? 0) - receivedMicros) > microsMax) return undefined;
  const writer = new EntryWriter(projectId, receivedMicros, body.isHistorical);
  const lines: LineFacts = {
    beforeUuid: writer.beforeUuid,
    beforeMode: writer.beforeMode,
    ip: added.ip,
    sentAt: added.sentAt,
    anonymizeIps: added.anonymizeIps,
    receivedMicros,
    sentAtMicros,
    makeUuid,
  };
  const list = new EntryList(writer, notes);
  let unusual = 0;
  scanner!.begin(body, lines);
  for (let next = 0; next < body.events; ) {
    const written = scanner!.write(body, next, lines);
    list.addLines(written.lines);
    if (written.next === body.events) break;
    // Without progress it is not for lack of room.
    if (written.next === next) {
      if (++unusual > unusualMax) return undefined;
      const item = parseEvent(scanner!.eventText(body, next));
      list.add(normalize(item, facts));
      next++;
    } else next = written.next;
  }
  return list.end();
}
