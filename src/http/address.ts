/** Whether an address can be listened on, known before anything else is done. */

import { lookup } from "node:dns/promises";
import { AppError } from "../lib/errors.ts";

/** The address cannot be listened on. */
export class CanNotListen extends AppError {
  readonly code = "can_not_listen";
  override readonly hint: string;
  constructor(host: string, port: number, problem: string) {
    super(`${host}:${port} cannot be listened on (${problem}).`);
    // What is no address of this machine, or no name at all, is refused as invalid.
    this.hint = /EINVAL|EADDRNOTAVAIL|ENOTFOUND/.test(problem)
      ? "--host must be an address of this machine: 127.0.0.1, or 0.0.0.0 for all of them."
      : /EACCES/.test(problem)
        ? "Choose a --port above 1023, or give the program the right to lower ones."
        : "Stop the program that uses it, or choose another --host or --port.";
  }
}

/** Tries to listen for a moment. @returns what hinders it */
export async function whyNotListen(host: string, port: number): Promise<string | undefined> {
  try {
    // A name that nobody knows the runtime refuses with whichever error was the last one.
    await lookup(host);
    await Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() }).stop(true);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws {CanNotListen} */
export async function requireFreeAddress(host: string, port: number): Promise<void> {
  const problem = await whyNotListen(host, port);
  if (problem !== undefined) throw new CanNotListen(host, port, problem);
}
