/** How every command ends: results on standard output, errors in one sentence on standard error, exit 0, 1 or 2. */

import { InvalidArgumentError } from "commander";
import { WrongSetting } from "../src/config.ts";
import { AppError } from "../src/errors.ts";
import { FlagInvalid } from "../src/flags/definition/flag-invalid.ts";
import { InvalidField } from "../src/metadata/errors.ts";

/** Exit status of a command that failed. */
export const exitFailed = 1;
/** Exit status of a command that was called wrongly. */
export const exitUsage = 2;

/** Wraps a command's action: whatever it throws becomes one sentence and an exit status. */
export function run<Arguments extends unknown[]>(
  action: (...args: Arguments) => Promise<void> | void,
): (...args: Arguments) => Promise<void> {
  return async (...args) => {
    try {
      await action(...args);
    } catch (error) {
      fail(error);
    }
  };
}

/** Prints an error for a person and ends the process. */
export function fail(error: unknown): never {
  if (error instanceof FlagInvalid) {
    process.stderr.write(`flagkeep: ${error.message}\n`);
    process.exit(exitUsage);
  }
  if (error instanceof AppError) {
    process.stderr.write(`flagkeep: ${error.message}${error.hint === undefined ? "" : ` ${error.hint}`}\n`);
    process.exit(error instanceof WrongSetting || error instanceof InvalidField ? exitUsage : exitFailed);
  }
  process.stderr.write(
    `flagkeep: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
  );
  process.exit(exitFailed);
}

/** Prints a result as one line of JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}

/** Prints rows below their headings, in columns as wide as needed. */
export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  print(line(headings.map((heading) => heading.toUpperCase())));
  for (const row of rows) print(line(row));
}

/** `1.5 MiB` */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** `3 d 4 h`, `5 min 6 s`: the two largest units. */
export function durationText(seconds: number): string {
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3_600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [Math.floor(seconds) % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return "0 s";
  return parts
    .slice(first, first + 2)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

/** Parses an option that is a positive whole number. */
export function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a positive whole number.");
  return Number(text);
}

/** Parses `90d`, `12h` or `30m` to the moment that far from now. */
export function momentAfter(text: string): Date {
  const match = /^([1-9]\d{0,5})([mhd])$/.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be a time such as 90d, 12h or 30m.");
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as "m"];
  return new Date(Date.now() + Number(match[1]) * unitMs);
}
