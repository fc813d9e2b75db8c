/** Interface between an import and the server that it loads events into. */

import type { Author } from "../accounts/activity.ts";
import type { AdminQueries } from "../engine/admin-queries.ts";
import type { PersonLanes, StoredEvent } from "../events/duckdb/known-uuids.ts";
import { BufferPool } from "../lib/buffer-pool.ts";
import { NotFoundError } from "../lib/errors.ts";
import { RpcUpload } from "../rpc/server.ts";
import type { ImportBatch, ImportLimits, LastSeqs } from "./control-route.ts";
import type { LivePersons } from "./device-owners.ts";
import type { CopiedEvent } from "./read/record.ts";

/** Spare memory for new batches: as much as the batches in flight take. */
const spareBytesMax = 24 * 1024 * 1024;
const before = Buffer.from('{"historical_migration":true,"batch":[');
const comma = Buffer.from(",");
const behind = Buffer.from("]}\n");
/** Events per request, which the server process handles immediately: about 0.5 ms of work. */
const eventsMax = 400;
const bytesMax = 128 * 1024;

export interface ImportClient {
  limits(): Promise<ImportLimits>;
  /**
   * Stores a batch of events in the historical lane, all or none; resolves once they are on disk.
   *
   * @param requests written by a `RequestWriter`.
   */
  send(requests: Uint8Array): Promise<void>;
  /** The stored ones of these UUIDs. */
  knownUuids(uuids: string[]): Promise<ReadonlySet<string>>;
  /** Whether the project has historical events, which an older version may have imported. */
  hasHistory(): Promise<boolean>;
  /** The stored events with these UUIDs. */
  storedEvents(uuids: string[]): Promise<StoredEvent[]>;
  /** The persons with these distinct IDs. */
  personsOf(distinctIds: string[]): Promise<LivePersons>;
  /** The persons with any of these distinct IDs, and the lanes of their events. */
  importedPersons(distinctIds: string[]): Promise<PersonLanes[]>;
  /** Deletes a person; its events stay. */
  deletePerson(uuid: string): Promise<void>;
  /** Resolves once everything acknowledged so far, in both lanes, is readable. */
  settled(): Promise<void>;
  /** The last sequence number of the historical lane. */
  lastSeq(): Promise<number>;
  /** Resolves once the historical lane is readable up to this sequence number. */
  waitUntilLoaded(seq: number): Promise<void>;
}

/** A server that is retried while it starts. */
export interface ImportServer {
  ask<Name extends "knownUuids" | "hasHistory" | "storedEvents" | "personsOf" | "importedPersons">(
    name: Name,
    request: Parameters<AdminQueries[Name]>[0],
  ): ReturnType<AdminQueries[Name]>;
  send<Answer>(name: string, request?: unknown): Promise<Answer>;
  waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void>;
}

/** @param by author of deletions of persons that are deleted in the source. */
export function importClient(server: ImportServer, projectId: number, by: Author): ImportClient {
  return {
    limits: () => server.send<ImportLimits>("import_limits"),
    async send(requests) {
      const batch: ImportBatch = { project_id: projectId };
      await server.send("import_requests", new RpcUpload(batch, requests));
    },
    knownUuids: async (uuids) => new Set(await server.ask("knownUuids", { projectId, uuids })),
    hasHistory: () => server.ask("hasHistory", { projectId }),
    storedEvents: (uuids) => server.ask("storedEvents", { projectId, uuids }),
    async personsOf(distinctIds) {
      const owners = await server.ask("personsOf", { projectId, distinctIds });
      return new Map(
        owners.map(({ distinctId, personUuid: uuid, isIdentified }) => [distinctId, { uuid, isIdentified }]),
      );
    },
    importedPersons: (distinctIds) => server.ask("importedPersons", { projectId, distinctIds }),
    async deletePerson(uuid) {
      try {
        await server.send("delete_person", { project_id: projectId, uuid, by });
      } catch (error) {
        // It was deleted meanwhile.
        if ((error as { code?: unknown }).code !== new NotFoundError().code) throw error;
      }
    },
    settled: async () => server.waitUntilLoaded(await server.send<LastSeqs>("last_seqs")),
    lastSeq: async () => (await server.send<LastSeqs>("last_seqs")).historical,
    waitUntilLoaded: (historical) => server.waitUntilLoaded({ historical }),
  };
}

/** Serializes requests with events. */
export class RequestWriter {
  private readonly memory = new BufferPool(spareBytesMax);

  /**
   * The requests of a batch, in order: lines in the format of `/batch/`.
   *
   * @param texts JSON, without line breaks.
   */
  write(texts: readonly (string | CopiedEvent)[]): Uint8Array {
    const chunks = getChunks(texts);
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const requests = this.memory.take(length);
    let end = 0;
    for (const chunk of chunks) {
      requests.set(chunk, end);
      end += chunk.length;
    }
    return requests;
  }

  /** Reclaims the memory of requests that are no longer read. */
  release(requests: Uint8Array): void {
    this.memory.recycle(requests);
  }
}

function getChunks(texts: readonly (string | CopiedEvent)[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let events = 0;
  let bytes = 0;
  /** Events that are contiguous already. */
  let run: { texts: Buffer; start: number; end: number } | undefined;
  const endRun = () => {
    if (run !== undefined) chunks.push(run.texts.subarray(run.start, run.end));
    run = undefined;
  };
  for (const text of texts) {
    const isCopied = typeof text !== "string";
    const isFull = events === eventsMax || bytes >= bytesMax;
    if (isFull) {
      endRun();
      chunks.push(behind);
      [events, bytes] = [0, 0];
    }
    const isLagging = isCopied && run?.texts === text.texts && run.end + comma.length === text.start;
    if (!isLagging) {
      endRun();
      chunks.push(events === 0 ? before : comma);
    }
    events += 1;
    bytes += text.length;
    if (!isCopied) chunks.push(Buffer.from(text));
    else if (isLagging) run!.end = text.end;
    else run = { texts: text.texts, start: text.start, end: text.end };
  }
  endRun();
  if (events > 0) chunks.push(behind);
  return chunks;
}
