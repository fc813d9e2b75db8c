/** Runs operations for a command, in the data directory or on a server. */

import type { Caller, Operation } from "../../src/operations/operation.ts";
import type { OpenStores } from "./local-stores.ts";
import { type CallOptions, getServer } from "./server.ts";

/** @throws {InvalidSettingError} @throws {NotInitializedError} @throws {AmbiguousSelectorError} */
export async function withCaller(
  of: Operation,
  options: CallOptions,
  work: (caller: Caller) => Promise<void>,
  open?: OpenStores,
): Promise<void> {
  const server = getServer(options);
  if (server !== undefined) {
    const { remoteCaller } = await import("./remote.ts");
    return await work(remoteCaller(server, options));
  }
  const { withLocalCaller } = await import("./local.ts");
  await withLocalCaller(of, options, work, open);
}
