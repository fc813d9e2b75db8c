/** Structured logs on standard output: JSON lines, or the same as text for people. Never a key, never a body. */

import { type Logger, pino } from "pino";
import { inOneLine } from "./lib/terminal-text.ts";

export type Log = Logger;

/** Creates the log of the process. */
export function createLog(
  level: string,
  format: "text" | "json",
  output: { write(line: string): unknown } = standardOutput,
): Log {
  const options = {
    level,
    base: undefined,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return format === "json"
    ? pino(options, { write: (line) => void output.write(line) })
    : pino(options, { write: (line) => void output.write(stringify(line)) });
}

// pino's own destinations start a worker, which a compiled executable does not find.
const standardOutput = {
  write: (line: string) => {
    try {
      process.stdout.write(line);
    } catch {
      // A closed reader or a full disk must not end the process that logs.
    }
  },
};

/** `02:31:07.123 INFO  listening url=http://127.0.0.1:8000` */
function stringify(line: string): string {
  const { level, time, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const details = Object.entries(fields).map(
    ([key, value]) =>
      `${key}=${typeof value === "string" && inOneLine(value) === value ? value : JSON.stringify(value)}`,
  );
  const parts = [String(time), String(level).toUpperCase().padEnd(5), String(msg ?? ""), ...details];
  return `${inOneLine(parts.join(" "))}\n`;
}
