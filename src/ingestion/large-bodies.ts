/**
 * Processes large bodies in a separate thread, one after the other, so that the main thread is never blocked. The
 * thread ends when idle, and frees its memory.
 */

import type { EncodedBody } from "../http/decode/decode-body.ts";
import { RequestRejectedError } from "../http/decode/errors.ts";
import { HttpError } from "../http/http-error.ts";
import type { EntryJson } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { Semaphore } from "../lib/concurrency.ts";
import { startThread } from "../lib/operating-system.ts";
import type { CaptureProject } from "./ports.ts";
import type { Protocol, ReceiptInfo, RequestEntries } from "./request-entries.ts";

/** A large body and its context. */
export interface LargeBody {
  readonly body: EncodedBody;
  readonly protocol: Protocol;
  readonly limitBytes: number;
  readonly arrival: ReceiptInfo;
  /** Absent when the body names the project. */
  readonly known: CaptureProject | undefined;
}

/** Messages to the thread: a body, and replies to its requests. */
export type ToThread =
  | { readonly open: LargeBody }
  | { readonly project: CaptureProject }
  | { readonly isWritten: true };

/** UTF-8 of concatenated entries. */
export interface EntryBlock {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** End position of each entry. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

/**
 * Messages of the thread: the key it found, chunks of entries, and one of the last two at the end. It waits for
 * replies.
 */
export type FromThread =
  | { readonly token: string }
  | { readonly block: EntryBlock; readonly lane: Lane }
  | { readonly done: Pick<RequestEntries, "results"> }
  | { readonly failed: Rejection };

/** Serialized error; without a status it is a defect. */
export interface Rejection {
  readonly status?: number;
  readonly type?: string;
  readonly code?: string;
  readonly message: string;
}

/** Idle time after which the thread ends. */
const idleMs = 5_000;
/** A body that takes longer than this between two chunks is aborted: no valid body does. */
const blockMsMax = 60_000;
const key = 0;

/** Callbacks of a body. */
export interface LargeBodyCallbacks {
  /** Finds the project of a key. */
  findProject(token: string): CaptureProject;
  /** Resolves when the entries are on disk. */
  append(lane: Lane, entries: readonly EntryJson[]): Promise<unknown>;
}

export class LargeBodies {
  private readonly positions = new Semaphore({ total: 1, perKey: 1, waiting: 10_000 });
  private thread: Worker | undefined;
  private idleTimer: ReturnType<typeof setTimeout> | undefined;

  /**
   * Appends the entries of a body to the journal, chunk by chunk: the next body waits until they are on disk, so that
   * only one chunk of all of them is in memory.
   *
   * @returns the response body, if the protocol has one.
   * @throws {HttpError} the body is rejected; nothing was appended. @throws {Error} a defect.
   * @throws errors of the callbacks; the first chunks may be stored then.
   */
  async take(large: LargeBody, callbacks: LargeBodyCallbacks): Promise<Pick<RequestEntries, "results">> {
    const leave = await this.positions.enter(key);
    clearTimeout(this.idleTimer);
    try {
      return await this.inThread(large, callbacks);
    } finally {
      leave();
      this.idleTimer = setTimeout(() => this.end(), idleMs);
      this.idleTimer.unref();
    }
  }

  private inThread(large: LargeBody, { findProject: getProject, append }: LargeBodyCallbacks) {
    const thread = this.start();
    const report = (message: ToThread) => thread.postMessage(message);
    return new Promise<Pick<RequestEntries, "results">>((resolve, reject) => {
      const fail = (error: unknown) => {
        // Late messages for this body must not be attributed to the next one.
        this.end();
        reject(error);
      };
      const startTimer = () => setTimeout(() => fail(new Error("A large body took too long.")), blockMsMax);
      let timer = startTimer();
      const settle = (then: () => void) => {
        clearTimeout(timer);
        then();
      };
      thread.onerror = (event) => settle(() => fail(new Error(`A large body failed: ${event.message}`)));
      thread.onmessage = ({ data }: MessageEvent<FromThread>) => {
        if ("token" in data) {
          try {
            report({ project: getProject(data.token) });
          } catch (error) {
            settle(() => fail(error));
          }
        } else if ("block" in data) {
          clearTimeout(timer);
          append(data.lane, [...getEntries(data.block)]).then(() => {
            timer = startTimer();
            report({ isWritten: true });
          }, fail);
        } else if ("done" in data) {
          settle(() => resolve(data.done));
        } else {
          settle(() => reject(toError(data.failed)));
        }
      };
      const { buffer, byteLength } = large.body.bytes;
      // A dedicated buffer is transferred, a shared one copied.
      const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
      thread.postMessage({ open: large } satisfies ToThread, isOwn ? [buffer] : []);
    });
  }

  private start(): Worker {
    this.thread ??= startThread("src/ingestion/large-bodies-thread.ts");
    return this.thread;
  }

  private end(): void {
    this.thread?.terminate();
    this.thread = undefined;
    // Otherwise the memory of the bodies would stay allocated until this thread is busy again.
    Bun.gc(false);
  }
}

function* getEntries({ bytes, ends }: EntryBlock): Generator<Uint8Array> {
  let start = 0;
  for (const end of ends) {
    yield bytes.subarray(start, end);
    start = end;
  }
}

/** An error in serialized form. */
export function toRejection(error: unknown): Rejection {
  if (error instanceof RequestRejectedError) {
    const { status, type, code, message } = error;
    return { status, type, code, message };
  }
  return { message: error instanceof Error ? `${error.message}\n${error.stack}` : String(error) };
}

function toError({ status, type, code, message }: Rejection): Error {
  if (status === undefined) return new Error(message);
  return new HttpError(status, type!, code!, message);
}
