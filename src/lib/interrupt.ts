/** Cleanup of commands on Ctrl-C and SIGTERM. */

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
