/** Fast path of `request-entries.ts`: journal entries of a typical request, directly from its bytes. */

import { type EntryJson, EntryWriter } from "../journal/entry.ts";
import { EntryList, type NoteCount } from "./entry-list.ts";
import { normalize, type RequestFacts } from "./normalize.ts";
import { parseEvent } from "./payload.ts";
import { type LineFacts, type ScannedBody, Scanner } from "./scanner.ts";

/** Maximum atypical events of one request; with more, the whole request takes the slow path, which yields. */
const slowLinesMax = 200;
/** Instants and differences that are exact integers. */
const microsMax = 9e15;

let scanner: Scanner | undefined;

/** Reads a request. @returns undefined when it is atypical; otherwise valid until the next read. */
export function scan(bytes: Uint8Array): ScannedBody | undefined {
  // Created with the first request: most processes never get one.
  scanner ??= new Scanner();
  return scanner.read(bytes);
}

/**
 * The entries of a request, with the notes about its events.
 *
 * @returns undefined when too many of its events are atypical.
 */
export function scannedLines(
  body: ScannedBody,
  projectId: number,
  facts: RequestFacts,
  notes?: NoteCount,
): EntryJson[] | undefined {
  const { receivedMicros, sentAtMicros, added, generateUuid } = facts;
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
    generateUuid,
  };
  const list = new EntryList(writer, notes);
  let slowLines = 0;
  scanner!.start(body, lines);
  for (let next = 0; next < body.events; ) {
    const written = scanner!.write(body, next, lines);
    list.addLines(written.lines);
    if (written.next === body.events) break;
    // Without progress the event is atypical; the output buffer is not full.
    if (written.next === next) {
      if (++slowLines > slowLinesMax) return undefined;
      const item = parseEvent(scanner!.eventText(body, next));
      list.add(normalize(item, facts));
      next++;
    } else next = written.next;
  }
  return list.end();
}
