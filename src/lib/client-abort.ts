/** Signals a client disconnect to nested work without passing a signal through every function. */

import { AsyncLocalStorage } from "node:async_hooks";

const callers = new AsyncLocalStorage<AbortSignal | undefined>();

/** Runs work for a client; the signal aborts when the client disconnects. */
export function withAbortSignal<Result>(signal: AbortSignal, work: () => Result): Result {
  return callers.run(signal, work);
}

/** Runs work that continues when the current client disconnects. */
export function forNoCaller<Result>(work: () => Result): Result {
  return callers.run(undefined, work);
}

/** Whether an error only reports that the client disconnected before the work was done. */
export function isClientDisconnected(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && error instanceof Error && error.name === "AbortError";
}

/** The signal of the client that the current work is for. */
export function clientSignal(): AbortSignal | undefined {
  return callers.getStore();
}
