/** Lets work deep down know that whoever waits for it has gone, without handing a signal through every function. */

import { AsyncLocalStorage } from "node:async_hooks";

const callers = new AsyncLocalStorage<AbortSignal | undefined>();

/** Does work for a caller; the signal is aborted when it goes away. */
export function forCaller<Result>(signal: AbortSignal, work: () => Result): Result {
  return callers.run(signal, work);
}

/** Does work that goes on when the caller at hand disconnects. */
export function forNoCaller<Result>(work: () => Result): Result {
  return callers.run(undefined, work);
}

/** Whether an error says no more than that the caller went away before the work was done. */
export function isCallerGone(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && error instanceof Error && error.name === "AbortError";
}

/** The signal of the caller that the work at hand is done for. */
export function callerSignal(): AbortSignal | undefined {
  return callers.getStore();
}
