/** What the engine says to its front, over standard output. */

import { writeSync } from "node:fs";
import type { AppError } from "../lib/errors.ts";
import type { LogLevel, Report } from "./messages.ts";

export const report = (message: Report) => void process.stdout.write(`${JSON.stringify(message)}\n`);

export const log = (level: LogLevel, msg: string, fields: Record<string, unknown> = {}) =>
  report({ type: "log", level, msg, fields });

/** Said before the end of the process, unlike what a stream holds. */
export const reportLast = (message: Report) => void writeSync(1, `${JSON.stringify(message)}\n`);

/** The servers that cannot be used at this moment, by what they keep. */
const away = new Map<string, AppError>();

/** Says when a server goes away and when it is back. */
export function awayTeller(what: string) {
  return (reason: AppError | null) => {
    if (reason?.message === away.get(what)?.message) return;
    if (reason === null) {
      away.delete(what);
      log("info", `${what} can be reached again`);
    } else {
      away.set(what, reason);
      log("warn", reason.message);
    }
    const [first] = away.values();
    report({ type: "away", reason: first ? { message: first.message, hint: first.hint ?? "" } : null });
  };
}
