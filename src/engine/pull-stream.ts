/** Streams bytes from a producer at the reader's pace, with at most one chunk buffered. */

import { clientSignal } from "../lib/cancellation.ts";
import { RpcBytes } from "../rpc/server.ts";

/** Limit for slow readers: the event store's file cannot discard the snapshot being read. */
const lastsMs = 15 * 60_000;

/**
 * Starts the producer and waits for its first bytes.
 * @param work passes bytes to the sink, which waits for the reader; the signal is aborted when the reader stops
 * @param onWaited receives how long the reader took
 * @throws errors of `work` before its first bytes
 */
export async function pullStream(
  work: (sink: (bytes: Uint8Array) => Promise<void>, signal: AbortSignal) => Promise<void>,
  onWaited: (ms: number) => void,
): Promise<RpcBytes> {
  const disconnected = new AbortController();
  const signals = [clientSignal(), disconnected.signal, AbortSignal.timeout(lastsMs)];
  const signal = AbortSignal.any(signals.filter((signal) => signal !== undefined));
  let next = Promise.withResolvers<Uint8Array | undefined>();
  let chunkRead = Promise.withResolvers<void>();
  const sink = async (bytes: Uint8Array) => {
    if (bytes.length === 0) return;
    signal.throwIfAborted();
    const since = performance.now();
    next.resolve(bytes);
    await chunkRead.promise;
    signal.throwIfAborted();
    onWaited(performance.now() - since);
  };
  // Stop waiting for the reader.
  signal.addEventListener("abort", () => chunkRead.resolve(), { once: true });
  const done = work(sink, signal).then(
    () => next.resolve(undefined),
    (error) => {
      // The reader may already have stopped.
      next.promise.catch(() => undefined);
      next.reject(error);
    },
  );
  const first = await next.promise;
  async function* chunks() {
    try {
      for (let bytes = first; bytes !== undefined; bytes = await next.promise) {
        yield bytes;
        next = Promise.withResolvers();
        const { resolve } = chunkRead;
        chunkRead = Promise.withResolvers();
        if (signal.aborted) chunkRead.resolve();
        resolve();
      }
    } finally {
      disconnected.abort();
      await done;
    }
  }
  return new RpcBytes(chunks());
}
