/** What happens when somebody stops a command (Ctrl-C, SIGTERM) in the middle of its work. */

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

interface Work {
  cleanUp: (() => void) | undefined;
}

/** Work within work: the last one began last. */
const begun: Work[] = [];
let isInterrupted = false;

/**
 * Cleans up, says so and ends the process when it is told to stop. Of work within other work what began last is cleaned up
 * first.
 *
 * @param cleanUp synchronous; undefined: the process goes on until `stop` was called, and ends then.
 * @returns ends that.
 */
export function onInterrupt(cleanUp: (() => void) | undefined): () => void {
  const work: Work = { cleanUp };
  if (begun.length === 0) for (const signal of signals) process.on(signal, interrupted);
  begun.push(work);
  return () => {
    const at = begun.indexOf(work);
    if (at === -1) return;
    begun.splice(at, 1);
    if (isInterrupted) endUnlessNeeded();
    if (begun.length === 0) for (const signal of signals) process.off(signal, interrupted);
  };
}

function interrupted(): void {
  isInterrupted = true;
  endUnlessNeeded();
}

function endUnlessNeeded(): void {
  if (begun.some(({ cleanUp }) => cleanUp === undefined)) return;
  for (const { cleanUp } of begun.toReversed()) cleanUp!();
  if (begun.length > 0) process.stderr.write("flagkeep: interrupted; what was begun is removed.\n");
  process.exit(1);
}
