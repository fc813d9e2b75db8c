/** What an import needs of the appliance that it loads events into. */

import type { Analysis } from "../engine/analysis.ts";
import type { StoredEvent } from "../events/duckdb/known-uuids.ts";
import { ReusedBuffers } from "../lib/reused-buffers.ts";
import { RpcUpload } from "../rpc/server.ts";
import type { ImportBatch, LastSeqs } from "./control-route.ts";
import type { LivePersons } from "./device-owners.ts";
import type { CopiedEvent } from "./read/record.ts";

/** Of memory that waits for new batches: as much as those take that are under way. */
const spareBytesMax = 24 * 1024 * 1024;
const before = Buffer.from('{"historical_migration":true,"batch":[');
const comma = Buffer.from(",");
const behind = Buffer.from("]}\n");
/** Of a request, which the front takes apart at once: about half a millisecond of work. */
const eventsMax = 400;
const bytesMax = 128 * 1024;

export interface ImportTarget {
  /**
   * Stores a batch of events in the historical lane, all or none; resolves once they are on disk.
   *
   * @param requests as a `RequestWriter` makes them.
   */
  send(requests: Uint8Array): Promise<void>;
  /** Those of these uuids that are stored. */
  knownUuids(uuids: string[]): Promise<ReadonlySet<string>>;
  /** Whether the project has events of history, which an older version may have imported. */
  hasHistory(): Promise<boolean>;
  /** The events that are stored under these uuids. */
  storedEvents(uuids: string[]): Promise<StoredEvent[]>;
  /** The persons who have these distinct ids. */
  personsOf(distinctIds: string[]): Promise<LivePersons>;
  /** Resolves once everything can be read that is acknowledged by now, of both lanes. */
  settled(): Promise<void>;
  /** The last sequence number of the historical lane. */
  lastSeq(): Promise<number>;
  /** Resolves once the historical lane can be read up to this sequence number. */
  waitUntilLoaded(seq: number): Promise<void>;
}

/** An appliance that is asked again while it starts. */
export interface ImportAppliance {
  ask<Name extends "knownUuids" | "hasHistory" | "storedEvents" | "personsOf">(
    name: Name,
    request: Parameters<Analysis[Name]>[0],
  ): ReturnType<Analysis[Name]>;
  tell<Answer>(name: string, request?: unknown): Promise<Answer>;
  waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void>;
}

export function importTarget(appliance: ImportAppliance, projectId: number): ImportTarget {
  return {
    async send(requests) {
      const batch: ImportBatch = { project_id: projectId };
      await appliance.tell("import_requests", new RpcUpload(batch, requests));
    },
    knownUuids: async (uuids) => new Set(await appliance.ask("knownUuids", { projectId, uuids })),
    hasHistory: () => appliance.ask("hasHistory", { projectId }),
    storedEvents: (uuids) => appliance.ask("storedEvents", { projectId, uuids }),
    async personsOf(distinctIds) {
      const owners = await appliance.ask("personsOf", { projectId, distinctIds });
      return new Map(
        owners.map(({ distinctId, personUuid: uuid, isIdentified }) => [distinctId, { uuid, isIdentified }]),
      );
    },
    settled: async () => appliance.waitUntilLoaded(await appliance.tell<LastSeqs>("last_seqs")),
    lastSeq: async () => (await appliance.tell<LastSeqs>("last_seqs")).historical,
    waitUntilLoaded: (historical) => appliance.waitUntilLoaded({ historical }),
  };
}

/** Writes the requests that bring events. */
export class RequestWriter {
  private readonly memory = new ReusedBuffers(spareBytesMax);

  /**
   * The requests of a batch, in order: lines, each as clients send old events to `/batch/`.
   *
   * @param texts JSON, without line breaks.
   */
  write(texts: readonly (string | CopiedEvent)[]): Uint8Array {
    const pieces = piecesOf(texts);
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const requests = this.memory.take(length);
    let end = 0;
    for (const piece of pieces) {
      requests.set(piece, end);
      end += piece.length;
    }
    return requests;
  }

  /** Takes the memory of requests back that nobody reads any more. */
  release(requests: Uint8Array): void {
    this.memory.giveBack(requests);
  }
}

function piecesOf(texts: readonly (string | CopiedEvent)[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let [events, bytes] = [0, 0];
  /** Events that stand one behind the other already. */
  let run: { texts: Buffer; start: number; end: number } | undefined;
  const endRun = () => {
    if (run !== undefined) pieces.push(run.texts.subarray(run.start, run.end));
    run = undefined;
  };
  for (const text of texts) {
    const isCopied = typeof text !== "string";
    const isFull = events === eventsMax || bytes >= bytesMax;
    if (isFull) {
      endRun();
      pieces.push(behind);
      [events, bytes] = [0, 0];
    }
    const isBehind = isCopied && run?.texts === text.texts && run.end + comma.length === text.start;
    if (!isBehind) {
      endRun();
      pieces.push(events === 0 ? before : comma);
    }
    events += 1;
    bytes += text.length;
    if (!isCopied) pieces.push(Buffer.from(text));
    else if (isBehind) run!.end = text.end;
    else run = { texts: text.texts, start: text.start, end: text.end };
  }
  endRun();
  if (events > 0) pieces.push(behind);
  return pieces;
}
