/** Asks the running appliance of a data directory, if there is one. */

import { RpcUnreachable, rpcAsk } from "./client.ts";

/** The socket of the front in the data directory. */
export const controlSocketName = "control.sock";

/**
 * Asks the running appliance.
 *
 * Changes the working directory for a moment: the socket's path may be too long for the system.
 *
 * @param name    a name that the front answers to, such as `status`.
 * @param request sent as JSON.
 * @returns undefined when no appliance listens in this directory.
 * @throws {RpcFailed} it could not do it, or is another version and does not know the name.
 */
export async function askControl<Answer>(
  dataDir: string,
  name: string,
  request?: unknown,
): Promise<Answer | undefined> {
  const before = process.cwd();
  try {
    process.chdir(dataDir);
    return (await rpcAsk(controlSocketName, name, request)) as Answer;
  } catch (error) {
    const { code } = error as { code?: string };
    // There is no folder, no socket, or only one that a crash has left.
    if (error instanceof RpcUnreachable || code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  } finally {
    process.chdir(before);
  }
}
