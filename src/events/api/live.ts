/**
 * Realtime events as server-sent events. They come from the server process once the journal has acknowledged them, so
 * they also arrive while the engine is down. Slow readers cause no delay: rows per second are limited, the rest is only
 * counted.
 */

import { projectRoute } from "../../accounts/api/routes.ts";
import type { Route } from "../../http/route.ts";
import { object, optional, string } from "../../http/schemas.ts";
import { SseBroadcaster } from "../../http/sse.ts";
import { type EntryJson, type EventEntry, getLine } from "../../journal/entry.ts";
import { decodeEntries, getProperties } from "../../journal/entry-reader.ts";
import { PreparedLines } from "../../journal/prepared-lines.ts";
import type { Lane } from "../../journal/segment.ts";
import { isoFromMicros } from "../../lib/time.ts";
import { eventColumns, listedColumns } from "../columns.ts";

/** Maximum open streams of all projects. */
const readersMax = 200;
/** Maximum rows per second and reader. */
const rowsPerSecond = 50;
/** Maximum unread messages per reader; further rows are only counted. */
const unreadMax = 200;
/** Longer events are sent without properties. */
const rowLengthMax = 64 * 1024;
const secondMs = 1_000;
/** Interval at which readers' permissions are checked again. */
const checkIntervalMs = 5_000;

/** A reader and its filter. */
export interface LiveReader {
  projectId: number;
  event: string | undefined;
  distinctId: string | undefined;
  /** False once the key is revoked or the session has ended. */
  isStillAllowed: () => boolean;
}

interface Reader extends LiveReader {
  /** Rows sent in the current second. */
  rows: number;
  /** Events not sent since the last reported count. */
  skipped: number;
  checkAt: number;
}

interface EntrySink<Entries> {
  append(lane: Lane, entries: Entries): Promise<number>;
}

export class LiveEvents {
  private readonly streams: SseBroadcaster<Reader>;

  /** @param stopping ends all streams when aborted */
  constructor(stopping?: AbortSignal) {
    this.streams = new SseBroadcaster({
      streamsMax: readersMax,
      unreadMax,
      onSlow: "drop",
      tickMs: secondMs,
      stopping,
      full: { detail: "Too many streams are open.", retryAfterSeconds: 10 },
      projectOf: ({ projectId }) => projectId,
      onTick: () => this.tick(),
    });
  }

  /** Wraps the journal to send acknowledged events to readers. */
  watching<Entries extends readonly EntryJson[] | PreparedLines>(
    journal: EntrySink<Entries>,
  ): EntrySink<Entries> {
    return {
      append: (lane, entries) => {
        const appended = journal.append(lane, entries);
        if (this.streams.size === 0) return appended;
        return appended.then((first) => {
          this.send(lane, first, entries instanceof PreparedLines ? entries.entries() : entries);
          return first;
        });
      },
    };
  }

  /** @throws {HttpError} 503 if there are too many readers */
  open(reader: LiveReader, signal: AbortSignal): Response {
    const checkAt = performance.now() + checkIntervalMs;
    return this.streams.open({ ...reader, rows: 0, skipped: 0, checkAt: checkAt }, signal);
  }

  private send(lane: Lane, first: number, entries: readonly EntryJson[]): void {
    const readers = [...this.streams];
    for (const [index, written] of entries.entries()) {
      const entry = typeof written === "string" ? written : Buffer.from(written).toString();
      const facts = beginning.exec(entry.slice(0, rowLengthMax));
      if (facts === null) {
        // Notes, such as ingestion warnings, have no UUID.
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
        row ??= `event: event\ndata: ${getRow(entry, facts, first + index, lane)}\n\n`;
        this.streams.send(stream, row);
      }
    }
  }

  private tick(): void {
    const now = performance.now();
    for (const reader of this.streams) {
      reader.rows = 0;
      if (now >= reader.checkAt) {
        reader.checkAt = now + checkIntervalMs;
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
        "Server-sent events: `event` with one event as in the list (without its person; above 64 KiB without properties and with `is_cut` true), and `skipped` with the `count` of events not sent. At most 50 events per second are sent, fewer to slow clients. A comment is sent at least every 15 seconds.",
      tag: "Events",
      query: object({
        event: optional(string({ description: "Only events with this name." })),
        distinct_id: optional(string({ description: "Only events of this distinct id." })),
      }),
      answers: {
        200: { description: "`text/event-stream`, unlimited." },
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

/** Start of an event's entry: see `EntryWriter`. */
const beginning =
  /^"project_id":(\d+),"uuid":"([^"]+)","event":("[^"\\]*(?:\\.[^"\\]*)*"),"distinct_id":("[^"\\]*(?:\\.[^"\\]*)*"),"time":(-?\d+),"received":(\d+),"historical":(true|false),/;
/** Start of an entry whose name or ID exceeds the length of a row. */
const longBeginning = /^"project_id":(\d+),"uuid":"/;

function isWanted({ event, distinctId }: LiveReader, facts: RegExpExecArray): boolean {
  if (event !== undefined && JSON.parse(facts[3]!) !== event) return false;
  return distinctId === undefined || JSON.parse(facts[4]!) === distinctId;
}

/** Columns as in event lists, and the time of receipt. */
const columns = listedColumns.flatMap((name) =>
  name === "timestamp" ? [name, "received_at" as const] : [name],
);

function getRow(entry: string, facts: RegExpExecArray, seq: number, lane: Lane): string {
  const isCut = entry.length > rowLengthMax;
  const event = isCut ? getBeginning(facts, seq, lane) : wholeEvent(seq, entry);
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
  const read = decodeEntries(Buffer.from(getLine(seq, entry)), 0).entries[0] as EventEntry;
  return { ...read, properties: getProperties(read)! };
}

function getBeginning(facts: RegExpExecArray, seq: number, lane: Lane): Partial<LiveEvent> {
  const [, , uuid, event, distinctId, time, received] = facts;
  return {
    seq,
    historical: lane === "historical",
    properties: {},
    uuid,
    event: JSON.parse(event!),
    distinctId: JSON.parse(distinctId!),
    timeMicros: Number(time),
    receivedMicros: Number(received),
  };
}
