/** The import of one file: what it is given, and its result. */

import type { ImportAbortedError } from "./abort-rules.ts";
import type { ImportCounts, SpilledCounts } from "./counts.ts";
import type { DryRunReport } from "./dry-run.ts";
import type { ImportClient, RequestWriter } from "./import-client.ts";
import type { LinkGate } from "./link-gate.ts";
import type { FieldRule } from "./map/fields.ts";
import type { ImportFormat, MapContext } from "./map/formats.ts";
import type { SourceUser } from "./map/mapped.ts";
import type { Zone } from "./map/zone.ts";
import type { ImportProgress } from "./progress-file.ts";
import type { Content } from "./read/archive-contents.ts";
import type { CorruptInputError } from "./read/input.ts";
import type { RecordCopiers } from "./read/record-copier.ts";
import type { Receipt, Span } from "./receipt.ts";
import type { RecentStrings, RecentUuids } from "./recent.ts";
import type { Reject } from "./reject-file.ts";
import type { SnapshotStore } from "./snapshots.ts";

/** Sends batches in reading order, also across files. */
export class SendingOrder {
  private last: Promise<unknown> = Promise.resolve();
  /** Batches that have not arrived. */
  private readonly underWay = new Set<Promise<void>>();
  private bytes = 0;

  /**
   * @param bytes of the batch, for `room`.
   * @param ready what the batch itself waits for.
   * @param send  called when all previous batches were sent, not when they have arrived.
   * @returns when it has arrived.
   */
  add<Ready>(bytes: number, ready: Promise<Ready>, send: (ready: Ready) => Promise<void>): Promise<void> {
    const before = this.last;
    const sent = (async () => {
      const [value] = await Promise.all([ready, before]);
      // Wrapped in an object, so that the promise is not awaited here.
      return { arrival: send(value) };
    })();
    this.last = sent;
    const arrived = sent.then(({ arrival }) => arrival);
    this.underWay.add(arrived);
    this.bytes += bytes;
    // A failure is reported where the result is awaited.
    sent.catch(() => undefined);
    const leave = () => {
      this.bytes -= bytes;
      this.underWay.delete(arrived);
    };
    arrived.then(leave).catch(() => undefined);
    return arrived;
  }

  /** Resolves when the batches in flight have fewer bytes. @throws errors of a batch. */
  async waitForCapacity(bytesMax: number): Promise<void> {
    while (this.bytes >= bytesMax) await Promise.race(this.underWay);
  }

  /** Resolves when everything has arrived. @throws errors of a batch. */
  async idle(): Promise<void> {
    await Promise.all(this.underWay);
  }
}

export interface ImportJob {
  content: Content;
  /** On disk, or `-`. */
  path: string;
  /** Number of the content in the import. */
  number: number;
  /** Data of lookup files about the records. */
  context: Omit<MapContext, "table">;
  /** Rows that describe persons and groups; shared by the files of one import. */
  snapshots: SnapshotStore;
  /** Persists which lookup rows were joined. */
  saveLookups: () => void;
  /** Records a source user that merges may name; undefined without a file of merges. */
  addSourceUser?: ((user: SourceUser) => void) | undefined;
  format: ImportFormat;
  fields: readonly FieldRule[];
  /** For times without a zone; absent: UTC. */
  zone?: Zone | undefined;
  /** Table cells that count as null, in addition to the built-in ones. */
  nulls?: readonly string[];
  gate: LinkGate;
  /** Of the JSON of one event, in the server's ingestion. */
  eventBytesMax: number;
  /** Whether an older version may have loaded the same records. */
  hasHistory: boolean;
  /** Counts of equal records without an ID; shared by the files of one import. */
  ordinals: SpilledCounts;
  isDryRun: boolean;
  isResumed: boolean;
  progress: ImportProgress;
  /** Path of the rejected records. */
  rejectPath: string;
  /** For working files. */
  workFolder: string;
  target: ImportClient;
  /** Shared by the files of one import. */
  recent: RecentUuids;
  receipt: Receipt;
  /** Pairs of IDs and states of groups already sent; shared by the files of one import. */
  said: RecentStrings;
  copiers: RecordCopiers;
  requests: RequestWriter;
  /** Orders the batches of the files of one import. */
  order: SendingOrder;
  /** How many more records may be rejected; shared by the files of one import. */
  rejectsLeft: { count: number };
  onBytes: (bytes: number) => void;
  /** Called with the records of this run, and with those of earlier runs that are skipped. */
  onRecords: (records: number, isEarlier: boolean) => void;
  onReject: (reject: Reject) => void;
  /** Of a dry run; shared by the files of one import. */
  report?: DryRunReport | undefined;
  /** Called before the first record with a description of the file: `Amplitude's export, JSON lines, gzip`. */
  onFormat: (description: string) => void;
}

export interface ImportedFile {
  /** Over all runs. */
  counts: ImportCounts;
  hasRejects: boolean;
  /** Of its events, over all runs. */
  span: Span | undefined;
  /** Records done by earlier runs. */
  resumed: number;
  /** Why the end of the file could not be read. */
  corruption: CorruptInputError | undefined;
  /** Why it was aborted before its end. */
  stopped: ImportAbortedError | undefined;
}
