/** Checks in advance whether an address can be listened on. */

import { lookup } from "node:dns/promises";
import { AppError } from "../lib/errors.ts";

/** The address cannot be listened on. */
export class ListenError extends AppError {
  readonly code = "can_not_listen";
  override readonly hint: string;
  constructor(host: string, port: number, problem: string) {
    super(`${host}:${port} cannot be listened on (${problem}).`);
    // Addresses of other machines and invalid names are rejected as invalid settings.
    this.hint = /EINVAL|EADDRNOTAVAIL|ENOTFOUND/.test(problem)
      ? "--host must be an address of this machine: 127.0.0.1, or 0.0.0.0 for all interfaces."
      : /EACCES/.test(problem)
        ? "Choose a --port above 1023, or grant the program access to lower ports."
        : "Stop the program that uses it, or choose another --host or --port.";
  }
}

/** Listens briefly. @returns the reason of a failure */
export async function listenErrorReason(host: string, port: number): Promise<string | undefined> {
  try {
    // For unknown host names the runtime reports an unrelated earlier error.
    await lookup(host);
    await Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() }).stop(true);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws {ListenError} */
export async function assertAddressAvailable(host: string, port: number): Promise<void> {
  const problem = await listenErrorReason(host, port);
  if (problem !== undefined) throw new ListenError(host, port, problem);
}
