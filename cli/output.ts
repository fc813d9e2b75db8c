/** How every command ends: results on standard output, errors in one sentence on standard error, exit 0, 1 or 2. */

import { InvalidArgumentError } from "commander";
import { AppError, InvalidField, NotFound } from "../src/lib/errors.ts";
import { WrongSetting } from "../src/lib/setting-kinds.ts";
import { harmless, inOneLine } from "../src/lib/terminal-text.ts";
import { systemSentence } from "./system-errors.ts";

/** Exit status of a command that did what it was asked. */
export const exitDone = 0;
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
  // As `head` does, once it has had enough of a result.
  if (isOutputGone(error)) process.exit(exitDone);
  return failServing(error);
}

/** Whoever read what was written has gone. */
export function isOutputGone(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "EPIPE";
}

/** `fail` for a command that serves others: whoever reads its output has no say in how it ends. */
export function failServing(error: unknown): never {
  process.stderr.write(`flagkeep: ${harmless(sentenceOf(error))}\n`);
  process.exit(isWrongCall(error) ? exitUsage : exitFailed);
}

/** What went wrong and what to do about it. */
function sentenceOf(error: unknown): string {
  if (error instanceof InvalidField) return fieldSentence(error);
  if (error instanceof NotFound && error.what !== undefined) return `There is no ${error.what}.`;
  if (error instanceof AppError) {
    return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  }
  // Of a fault that nobody foresaw, its place in the program is worth more than a short message.
  return systemSentence(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error));
}

function isWrongCall(error: unknown): boolean {
  return error instanceof WrongSetting || error instanceof InvalidField;
}

/** Messages of the API leave it to the body's field to say what they are about. */
function fieldSentence({ field, message }: InvalidField): string {
  if (field === "scopes")
    return `${message}. Scopes are such as feature_flag:read, project:write, or * for all.`;
  if (field === null) return message;
  return message
    .replace(/^This field /, `The ${field} `)
    .replace(/^Ensure this field /, `Ensure that the ${field} `);
}

/** Prints a result as one line of JSON. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Prints lines for people. */
export function print(text = ""): void {
  process.stdout.write(`${harmless(text)}\n`);
}

/** Prints rows below their headings. */
export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  const columns = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
  for (const line of tableLines(headings, rows, columns)) print(line);
}

/**
 * Rows below their headings, in columns as wide as needed; where that is wider than the terminal, each row as a list.
 *
 * @param terminalColumns how much fits into one line.
 */
export function tableLines(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  terminalColumns: number,
): string[] {
  const titles = headings.map((heading) => heading.toUpperCase());
  const texts = rows.map((row) => headings.map((_, column) => inOneLine(row[column] ?? "")));
  const widths = titles.map((title, column) =>
    Math.max(...[title, ...texts.map((row) => row[column]!)].map((text) => Bun.stringWidth(text))),
  );
  const total = widths.reduce((sum, width) => sum + width + 2, -2);
  if (total > terminalColumns) return listLines(titles, texts);
  return [titles, ...texts].map((cells) =>
    cells
      .map((cell, column) => padded(cell, widths[column]!))
      .join("  ")
      .trimEnd(),
  );
}

function listLines(titles: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...titles.map((title) => title.length));
  return rows.flatMap((row, index) => [
    ...(index === 0 ? [] : [""]),
    ...titles.map((title, column) => `${title.padEnd(width)}  ${row[column]}`.trimEnd()),
  ]);
}

function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - Bun.stringWidth(text)));
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

/** An option that may be given again: its values in their order. */
export const collect = <Value>(parse: (text: string) => Value) => {
  return (text: string, before: Value[] | undefined): Value[] => [...(before ?? []), parse(text)];
};

/** Takes the name of a file or folder as it is. An empty one, of a variable that is not set, would be the folder one is in. */
export function fileName(text: string): string {
  if (text === "") throw new InvalidArgumentError("It must be the name of a file or folder.");
  return text;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, 0 or more.");
  return Number(text);
}

/** Parses `7d`, `12h`, `30m` or `10s`, and 0, to seconds. */
export function secondsOf(text: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  if (text !== "0" && match === null) {
    throw new InvalidArgumentError("It must be a time such as 7d, 12h or 30m, or 0.");
  }
  const unit = { s: 1, m: 60, h: 3_600, d: 86_400 }[(match?.[2] ?? "s") as "s"];
  return Number(match?.[1] ?? 0) * unit;
}

/** Parses `90d`, `12h` or `30m` to the moment that far from now. */
export function momentAfter(text: string): Date {
  const match = /^([1-9]\d{0,5})([mhd])$/.exec(text);
  if (match === null) throw new InvalidArgumentError("It must be a time such as 90d, 12h or 30m.");
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as "m"];
  return new Date(Date.now() + Number(match[1]) * unitMs);
}
