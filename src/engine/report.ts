/** Messages of the engine to its server process, on standard output. */

import { writeSync } from "node:fs";
import type { AppError } from "../lib/errors.ts";
import type { LogLevel, Report } from "./messages.ts";

export const report = (message: Report) => void process.stdout.write(`${JSON.stringify(message)}\n`);

export const log = (level: LogLevel, msg: string, fields: Record<string, unknown> = {}) =>
  report({ type: "log", level, msg, fields });

/** Written before the process exits, unlike buffered stream writes. */
export function reportSync(message: Report): void {
  try {
    writeSync(1, `${JSON.stringify(message)}\n`);
  } catch (error) {
    // The server process was killed.
    if ((error as NodeJS.ErrnoException).code !== "EPIPE") throw error;
  }
}

/** Servers that are currently unavailable, by their purpose. */
const unavailable = new Map<string, AppError>();

/** Logs when a server becomes unavailable and when it is available again. */
export function availabilityLogger(what: string) {
  return (reason: AppError | null) => {
    if (reason?.message === unavailable.get(what)?.message) return;
    if (reason === null) {
      unavailable.delete(what);
      log("info", `${what} is reachable again`);
    } else {
      unavailable.set(what, reason);
      log("warn", reason.message);
    }
    const [first] = unavailable.values();
    report({ type: "away", reason: first ? { message: first.message, hint: first.hint ?? "" } : null });
  };
}
