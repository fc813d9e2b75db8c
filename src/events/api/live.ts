/**
 * Events as they arrive, as server-sent events: told by the front as soon as the journal has acknowledged them, so that
 * they show while the engine is down too.
 *
 * Nobody waits for a reader: rows are few a second, the others are counted, and a reader that does not read loses rows.
 */

import { projectRoute } from "../../accounts/api/routes.ts";
import { EventStreams } from "../../http/event-streams.ts";
import type { Route } from "../../http/route.ts";
import { object, optional, text } from "../../http/shapes.ts";
import type { JournalSink } from "../../ingestion/ports.ts";
import { type EntryText, type EventEntry, lineOf } from "../../journal/entry.ts";
import { decodeEntries, propertiesOf } from "../../journal/entry-reader.ts";
import type { Lane } from "../../journal/segment.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { eventColumns, listedColumns } from "../columns.ts";

/** Open streams of all projects together. */
const readersMax = 200;
/** Rows that one reader gets in a second. */
const rowsPerSecond = 50;
/** Messages that may wait for a reader that does not read; further rows are only counted. */
const unreadMax = 200;
/** Longer events come without their properties. */
const rowLengthMax = 64 * 1024;
const secondMs = 1_000;
/** How often it is looked at whether a reader still may. */
const lookEveryMs = 5_000;

/** Who reads what. */
export interface LiveReader {
  projectId: number;
  event: string | undefined;
  distinctId: string | undefined;
  /** False once the key is revoked, or the session over. */
  isStillAllowed: () => boolean;
}

interface Reader extends LiveReader {
  /** Rows of this second. */
  rows: number;
  /** Events since the last count was told. */
  skipped: number;
  lookAt: number;
}

export class LiveEvents {
  private readonly streams: EventStreams<Reader>;

  /** @param stopping when it fires, all streams end. */
  constructor(stopping?: AbortSignal) {
    this.streams = new EventStreams({
      ...{ streamsMax: readersMax, unreadMax, onSlow: "drop", tickMs: secondMs, stopping },
      full: { detail: "Too many streams are open.", retryAfterSeconds: 10 },
      projectOf: ({ projectId }) => projectId,
      onTick: () => this.tick(),
    });
  }

  /** The journal, with readers told of what it has acknowledged. */
  watching(journal: JournalSink): JournalSink {
    return {
      append: (lane, entries) => {
        const appended = journal.append(lane, entries);
        if (this.streams.size === 0) return appended;
        return appended.then((first) => {
          this.tell(lane, first, entries);
          return first;
        });
      },
    };
  }

  /** @throws {HttpFailure} 503 when too many read. */
  open(reader: LiveReader, signal: AbortSignal): Response {
    const lookAt = performance.now() + lookEveryMs;
    return this.streams.open({ ...reader, rows: 0, skipped: 0, lookAt }, signal);
  }

  private tell(lane: Lane, first: number, entries: readonly EntryText[]): void {
    const readers = [...this.streams];
    for (const [index, written] of entries.entries()) {
      const entry = typeof written === "string" ? written : Buffer.from(written).toString();
      const facts = beginning.exec(entry.slice(0, rowLengthMax));
      if (facts === null) {
        // Notes about odd events have no uuid.
        const projectId = Number(longBeginning.exec(entry)?.[1]);
        for (const stream of readers) if (stream.projectId === projectId) stream.skipped += 1;
        continue;
      }
      const projectId = Number(facts[1]);
      let row: string | undefined;
      for (const stream of readers) {
        if (stream.projectId !== projectId || !isWanted(stream, facts)) continue;
        if (stream.rows >= rowsPerSecond || !this.streams.canRead(stream)) {
          stream.skipped += 1;
          continue;
        }
        stream.rows += 1;
        row ??= `event: event\ndata: ${rowOf(entry, facts, first + index, lane)}\n\n`;
        this.streams.send(stream, row);
      }
    }
  }

  private tick(): void {
    const now = performance.now();
    for (const reader of this.streams) {
      reader.rows = 0;
      if (now >= reader.lookAt) {
        reader.lookAt = now + lookEveryMs;
        if (!reader.isStillAllowed()) this.streams.close(reader);
      }
      const counted = `event: skipped\ndata: {"count":${reader.skipped}}\n\n`;
      if (reader.skipped > 0 && this.streams.send(reader, counted)) reader.skipped = 0;
    }
  }
}

/** `GET /events/stream`. */
export function liveRoutes({ live }: { live: LiveEvents }): Route[] {
  return [
    projectRoute("GET", "/events/stream", ["event:read", "query:read"], {
      summary: "Stream events as they arrive",
      description:
        "Server-sent events, from now on: `event` with one event as the list shows it (without its person; without its properties when it is longer than 64 KiB, then `is_cut` is true), and `skipped` with the `count` of those that were not sent: at most 50 a second are, fewer to somebody who reads slowly. A comment comes at least every 15 seconds.",
      tag: "Events",
      query: object({
        event: optional(text({ description: "Only events with this name." })),
        distinct_id: optional(text({ description: "Only events of this distinct id." })),
      }),
      answers: {
        200: { description: "`text/event-stream`, without an end." },
        503: { description: "Too many streams are open." },
      },
      handle: ({ project, query, request, isStillAllowed }) =>
        live.open(
          {
            projectId: project.id,
            event: query.get("event") || undefined,
            distinctId: query.get("distinct_id") || undefined,
            isStillAllowed,
          },
          request.signal,
        ),
    }),
  ];
}

/** What an event's entry begins with: see `EntryWriter`. */
const beginning =
  /^"project_id":(\d+),"uuid":"([^"]+)","event":("[^"\\]*(?:\\.[^"\\]*)*"),"distinct_id":("[^"\\]*(?:\\.[^"\\]*)*"),"time":(-?\d+),"received":(\d+),"historical":(true|false),/;
/** The same of one whose name or id is longer than a row. */
const longBeginning = /^"project_id":(\d+),"uuid":"/;

function isWanted({ event, distinctId }: LiveReader, facts: RegExpExecArray): boolean {
  if (event !== undefined && JSON.parse(facts[3]!) !== event) return false;
  return distinctId === undefined || JSON.parse(facts[4]!) === distinctId;
}

/** As lists show events, and when they came. */
const columns = listedColumns.flatMap((name) =>
  name === "timestamp" ? [name, "received_at" as const] : [name],
);

function rowOf(entry: string, facts: RegExpExecArray, seq: number, lane: Lane): string {
  const isCut = entry.length > rowLengthMax;
  const event = isCut ? beginningOf(facts, seq, lane) : wholeEvent(seq, entry);
  const row: Record<string, unknown> = { id: event.uuid };
  for (const name of columns) {
    const { kind, member, forNull = null } = eventColumns[name];
    const value = kind === "json" ? event.properties : event[member!];
    row[name] = kind === "instant" ? isoFromMicros(value as number) : (value ?? forNull);
  }
  return JSON.stringify({ ...row, is_cut: isCut });
}

type LiveEvent = EventEntry & { readonly properties: Record<string, unknown> };

function wholeEvent(seq: number, entry: string): LiveEvent {
  const read = decodeEntries(Buffer.from(lineOf(seq, entry)), 0).entries[0] as EventEntry;
  return { ...read, properties: propertiesOf(read)! };
}

function beginningOf(facts: RegExpExecArray, seq: number, lane: Lane): Partial<LiveEvent> {
  const [, , uuid, event, distinctId, time, received] = facts;
  return {
    ...{ seq, historical: lane === "historical", properties: {} },
    ...{ uuid, event: JSON.parse(event!), distinctId: JSON.parse(distinctId!) },
    ...{ timeMicros: Number(time), receivedMicros: Number(received) },
  };
}
