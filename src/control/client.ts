/** Asks the running appliance of a data directory, if there is one. */

import { AppError } from "../errors.ts";
import { controlSocketName, failedStatus } from "./server.ts";

/** The appliance was asked and could not do it. */
export class ControlFailed extends AppError {
  constructor(
    readonly code: string,
    message: string,
    override readonly hint?: string,
  ) {
    super(message);
  }
}

/**
 * Asks the running appliance.
 *
 * Changes the working directory for a moment: the socket's path may be too long for the system.
 *
 * @param name    a route of the control server, such as `status`.
 * @param request sent as JSON.
 * @returns undefined when no appliance listens in this directory.
 * @throws {ControlFailed} it could not do it, or is another version and does not know the name.
 */
export async function askControl<Answer>(
  dataDir: string,
  name: string,
  request?: unknown,
): Promise<Answer | undefined> {
  const response = await post(dataDir, name, request);
  if (response === undefined) return undefined;
  if (response.status === failedStatus) {
    const { code, message, hint } = (await response.json()) as {
      code: string;
      message: string;
      hint?: string;
    };
    throw new ControlFailed(code, message, hint);
  }
  if (!response.ok) {
    throw new ControlFailed(
      "not_known",
      `The running appliance does not know "${name}".`,
      "Start it again, so that it is of the same version as this command.",
    );
  }
  return (await response.json()) as Answer;
}

async function post(dataDir: string, name: string, request: unknown): Promise<Response | undefined> {
  const before = process.cwd();
  try {
    process.chdir(dataDir);
    return await fetch(`http://appliance/${name}`, {
      unix: controlSocketName,
      method: "POST",
      body: request === undefined ? undefined : JSON.stringify(request),
      timeout: false,
    } as RequestInit);
  } catch {
    // Nobody listens: there is no folder, no socket, or only one that a crash has left.
    return undefined;
  } finally {
    process.chdir(before);
  }
}
