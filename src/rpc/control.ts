/** Calls the running server of a data directory, if any. */

import { RpcUnreachableError, rpcCall } from "./client.ts";

/** The server's socket in the data directory. */
export const controlSocketName = "control.sock";

/**
 * Calls the running server. Changes the working directory temporarily: the socket's path may exceed the system's limit.
 * @param name of a call that the server handles, such as `status`
 * @param request sent as JSON
 * @returns undefined if no server listens in this directory
 * @throws {RpcError} the call failed, or the server is another version and does not know the name
 */
export async function callControl<Answer>(
  dataDir: string,
  name: string,
  request?: unknown,
): Promise<Answer | undefined> {
  const before = process.cwd();
  try {
    process.chdir(dataDir);
    return (await rpcCall(controlSocketName, name, request)) as Answer;
  } catch (error) {
    const { code } = error as { code?: string };
    // No folder, no socket, or a stale socket after a crash.
    if (error instanceof RpcUnreachableError || code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  } finally {
    process.chdir(before);
  }
}
