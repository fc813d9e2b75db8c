/** Whether an address can be listened on, known before anything else is done. */

import { AppError } from "../lib/errors.ts";

/** The address cannot be listened on. */
export class CanNotListen extends AppError {
  readonly code = "can_not_listen";
  override readonly hint = "Stop the program that uses it, or choose another --host or --port.";
  constructor(host: string, port: number, problem: string) {
    super(`${host}:${port} cannot be listened on (${problem}).`);
  }
}

/** Tries to listen for a moment. @returns what hinders it */
export async function whyNotListen(host: string, port: number): Promise<string | undefined> {
  try {
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
