/** Bytes that work hands out one after the other, read as they come: between the two there is one piece at most. */

import { callerSignal } from "../lib/caller.ts";
import { RpcBytes } from "../rpc/server.ts";

/** However slowly it is read: what is being read stays in the event store's file as it was when it began. */
const lastsMs = 15 * 60_000;

/**
 * Starts the work and waits for its first bytes.
 *
 * @param work     hands its bytes to the sink, which waits for the reader; the signal is aborted when there is none.
 * @param onWaited told how long the reader was waited for.
 * @throws what the work throws before its first bytes.
 */
export async function producedBytes(
  work: (sink: (bytes: Uint8Array) => Promise<void>, signal: AbortSignal) => Promise<void>,
  onWaited: (ms: number) => void,
): Promise<RpcBytes> {
  const gone = new AbortController();
  const signals = [callerSignal(), gone.signal, AbortSignal.timeout(lastsMs)];
  const signal = AbortSignal.any(signals.filter((one) => one !== undefined));
  let hand = Promise.withResolvers<Uint8Array | undefined>();
  let taken = Promise.withResolvers<void>();
  const sink = async (bytes: Uint8Array) => {
    if (bytes.length === 0) return;
    signal.throwIfAborted();
    const since = performance.now();
    hand.resolve(bytes);
    await taken.promise;
    signal.throwIfAborted();
    onWaited(performance.now() - since);
  };
  // Whoever waits must not do so for ever.
  signal.addEventListener("abort", () => taken.resolve(), { once: true });
  const done = work(sink, signal).then(
    () => hand.resolve(undefined),
    (error) => {
      // Perhaps nobody waits any more.
      hand.promise.catch(() => undefined);
      hand.reject(error);
    },
  );
  const first = await hand.promise;
  async function* chunks() {
    try {
      for (let bytes = first; bytes !== undefined; bytes = await hand.promise) {
        yield bytes;
        hand = Promise.withResolvers();
        const { resolve } = taken;
        taken = Promise.withResolvers();
        if (signal.aborted) taken.resolve();
        resolve();
      }
    } finally {
      gone.abort();
      await done;
    }
  }
  return new RpcBytes(chunks());
}
