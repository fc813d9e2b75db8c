/** Cancellation of work: by a disconnected client, and of commands by Ctrl-C and SIGTERM. */

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

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

interface Work {
  cleanUp: (() => void) | undefined;
}

/** Nested work, innermost last. */
const started: Work[] = [];
let isInterrupted = false;

/**
 * On a signal, runs the clean-ups, innermost work first, prints a message and exits.
 *
 * @param cleanUp synchronous; undefined: the process continues until `stop` was called, and then exits.
 * @returns a function that ends the work.
 */
export function onInterrupt(cleanUp: (() => void) | undefined): () => void {
  const work: Work = { cleanUp };
  if (started.length === 0) for (const signal of signals) process.on(signal, interrupted);
  started.push(work);
  return () => {
    const at = started.indexOf(work);
    if (at === -1) return;
    started.splice(at, 1);
    if (isInterrupted) endUnlessNeeded();
    if (started.length === 0) for (const signal of signals) process.off(signal, interrupted);
  };
}

function interrupted(): void {
  isInterrupted = true;
  endUnlessNeeded();
}

function endUnlessNeeded(): void {
  if (started.some(({ cleanUp }) => cleanUp === undefined)) return;
  for (const { cleanUp } of started.toReversed()) cleanUp!();
  if (started.length > 0) process.stderr.write("flagkeep: interrupted; partial results are deleted.\n");
  process.exit(1);
}
