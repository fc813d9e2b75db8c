/** What happens when somebody stops a command (Ctrl-C, SIGTERM) in the middle of its work. */

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Cleans up, says so and ends the process when it is told to stop.
 *
 * @param cleanUp synchronous; undefined: the process goes on until `stop` was called, and ends then.
 * @returns ends that.
 */
export function onInterrupt(cleanUp: (() => void) | undefined): () => void {
  let isInterrupted = false;
  const end = () => process.exit(1);
  const handle = () => {
    isInterrupted = true;
    if (cleanUp === undefined) return;
    cleanUp();
    process.stderr.write("flagkeep: interrupted; what was begun is removed.\n");
    end();
  };
  for (const signal of signals) process.on(signal, handle);
  return () => {
    for (const signal of signals) process.off(signal, handle);
    if (isInterrupted) end();
  };
}
