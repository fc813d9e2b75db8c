/**
 * Takes large bodies apart in a thread of its own, one after the other: whatever they are made of, the server's own
 * thread goes on. The thread ends when it has nothing to do, and gives its memory back.
 */

import { RequestRefused } from "../http/decode/failures.ts";
import type { WrappedBody } from "../http/decode/unwrap.ts";
import { HttpFailure } from "../http/failure.ts";
import type { EntryText } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { CaptureProject } from "./ports.ts";
import type { Protocol, ReceiptInfo, RequestEntries } from "./request-entries.ts";

/** A large body and what is known about it. */
export interface LargeBody {
  readonly body: WrappedBody;
  readonly protocol: Protocol;
  readonly limitBytes: number;
  readonly arrival: ReceiptInfo;
  /** Absent where the body says which project is meant. */
  readonly known: CaptureProject | undefined;
}

/** What the thread gets: a body, and answers to what it asks. */
export type ToThread =
  | { readonly open: LargeBody }
  | { readonly project: CaptureProject }
  | { readonly isWritten: true };

/** The UTF-8 of entries, one behind the other. */
export interface EntryPiece {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each ends. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

/** What the thread says: which key it found, pieces of the lines, and one of the last two at the end. It waits for answers. */
export type FromThread =
  | { readonly token: string }
  | { readonly piece: EntryPiece; readonly lane: Lane }
  | { readonly done: Pick<RequestEntries, "results"> }
  | { readonly failed: Refusal };

/** An error on its way between threads; without a status it is a defect. */
export interface Refusal {
  readonly status?: number;
  readonly type?: string;
  readonly code?: string;
  readonly message: string;
}

/** How long the thread waits for more to do. */
const idleMs = 5_000;
/** A body that takes longer than this from one piece to the next is given up: no body of any kind does. */
const pieceMsMax = 60_000;
const key = 0;

// The build puts the thread's file into the executable under this name.
// biome-ignore lint/style/useNamingConvention: the name that build.ts replaces
declare const FLAGKEEP_VERSION: string | undefined;
const isExecutable = typeof FLAGKEEP_VERSION === "string";

/** What a body needs of others. */
export interface LargeBodyCallbacks {
  /** Finds the project of a key. */
  projectOf(token: string): CaptureProject;
  /** Resolves when the entries are on the disk. */
  append(lane: Lane, entries: readonly EntryText[]): Promise<unknown>;
}

export class LargeBodies {
  private readonly places = new Semaphore({ total: 1, perKey: 1, waiting: 10_000 });
  private thread: Worker | undefined;
  private idleTimer: ReturnType<typeof setTimeout> | undefined;

  /**
   * Appends the lines of a body to the journal, piece by piece: the next body waits until they are on the disk, and what is
   * held of all of them is one piece.
   *
   * @returns the body of the answer, where the protocol has one.
   * @throws {HttpFailure} the body is refused; nothing was appended. @throws {Error} a defect.
   * @throws what the callbacks throw; the first pieces may be stored then.
   */
  async take(large: LargeBody, callbacks: LargeBodyCallbacks): Promise<Pick<RequestEntries, "results">> {
    const leave = await this.places.enter(key);
    clearTimeout(this.idleTimer);
    try {
      return await this.inThread(large, callbacks);
    } finally {
      leave();
      this.idleTimer = setTimeout(() => this.end(), idleMs);
      this.idleTimer.unref();
    }
  }

  private inThread(large: LargeBody, { projectOf, append }: LargeBodyCallbacks) {
    const thread = this.start();
    const tell = (message: ToThread) => thread.postMessage(message);
    return new Promise<Pick<RequestEntries, "results">>((resolve, reject) => {
      const fail = (error: unknown) => {
        // What it still does for this body must not be taken for the next one's.
        this.end();
        reject(error);
      };
      const startTimer = () => setTimeout(() => fail(new Error("A large body took too long.")), pieceMsMax);
      let timer = startTimer();
      const settle = (then: () => void) => {
        clearTimeout(timer);
        then();
      };
      thread.onerror = (event) => settle(() => fail(new Error(`A large body failed: ${event.message}`)));
      thread.onmessage = ({ data }: MessageEvent<FromThread>) => {
        if ("token" in data) {
          try {
            tell({ project: projectOf(data.token) });
          } catch (error) {
            settle(() => fail(error));
          }
        } else if ("piece" in data) {
          clearTimeout(timer);
          append(data.lane, [...entriesOf(data.piece)]).then(() => {
            timer = startTimer();
            tell({ isWritten: true });
          }, fail);
        } else if ("done" in data) {
          settle(() => resolve(data.done));
        } else {
          settle(() => reject(errorOf(data.failed)));
        }
      };
      const { buffer, byteLength } = large.body.bytes;
      // Handed over where it is all there is; copied where others share it.
      const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
      thread.postMessage({ open: large } satisfies ToThread, isOwn ? [buffer] : []);
    });
  }

  private start(): Worker {
    this.thread ??= new Worker(
      isExecutable
        ? "./src/ingestion/large-bodies-thread.ts"
        : new URL("./large-bodies-thread.ts", import.meta.url).href,
    );
    return this.thread;
  }

  private end(): void {
    this.thread?.terminate();
    this.thread = undefined;
    // Left alone, the memory of the bodies themselves would stay with this thread until it is busy again.
    Bun.gc(false);
  }
}

function* entriesOf({ bytes, ends }: EntryPiece): Generator<Uint8Array> {
  let start = 0;
  for (const end of ends) {
    yield bytes.subarray(start, end);
    start = end;
  }
}

/** An error as the thread sends it. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof RequestRefused) {
    const { status, type, code, message } = error;
    return { status, type, code, message };
  }
  return { message: error instanceof Error ? `${error.message}\n${error.stack}` : String(error) };
}

function errorOf({ status, type, code, message }: Refusal): Error {
  if (status === undefined) return new Error(message);
  return new HttpFailure(status, type!, code!, message);
}
