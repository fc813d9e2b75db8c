/** Output of commands: results on standard output, errors in one sentence on standard error, exit status 0, 1 or 2. */

import type { TSchema } from "@sinclair/typebox";
import { type Command, InvalidArgumentError } from "commander";
import { AppError, InvalidFieldError, NotFoundError } from "../src/lib/errors.ts";
import { InvalidSettingError } from "../src/lib/setting-types.ts";
import { harmless, inOneLine } from "../src/lib/terminal-text.ts";

interface SystemError {
  cause: string;
  advice?: string;
}

const fixPermissions = "Run the command as the owner of the files, or fix their permissions.";
const freeSpace = "Free disk space, then try again.";
const restore = "Run `flagkeep doctor`, and restore a backup.";

const systemErrors: Record<string, SystemError> = {
  EACCES: { cause: "Permission was denied", advice: fixPermissions },
  EPERM: { cause: "Permission was denied", advice: fixPermissions },
  EROFS: { cause: "The file system is read-only", advice: fixPermissions },
  ENOSPC: { cause: "The disk is full", advice: freeSpace },
  EDQUOT: { cause: "The disk quota is exceeded", advice: freeSpace },
  ENOENT: { cause: "A file or folder is missing" },
  ENOTDIR: { cause: "A part of the path is not a folder" },
  EISDIR: { cause: "The path is a folder" },
  EIO: { cause: "The disk reports an error" },
  EMFILE: { cause: "Too many files are open" },
  SQLITE_READONLY: { cause: "The data directory cannot be written", advice: fixPermissions },
  SQLITE_CANTOPEN: { cause: "A store cannot be opened", advice: fixPermissions },
  SQLITE_PERM: { cause: "A store cannot be opened", advice: fixPermissions },
  SQLITE_FULL: { cause: "The disk is full", advice: freeSpace },
  SQLITE_IOERR: { cause: "The disk reports an error" },
  SQLITE_BUSY: { cause: "Another process holds the lock of a store", advice: "Try again." },
  SQLITE_CORRUPT: { cause: "A store is corrupt", advice: restore },
  SQLITE_NOTADB: { cause: "A store is corrupt", advice: restore },
};

/** Undefined for other errors. */
export function systemErrorMessage(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") return undefined;
  // SQLITE_READONLY_DIRECTORY and the like are kinds of SQLITE_READONLY.
  const kind = code.startsWith("SQLITE_") ? code.split("_").slice(0, 2).join("_") : code;
  const found = systemErrors[kind];
  if (found === undefined) return undefined;
  const sentence = `${found.cause} (${error.message.replaceAll(/\s+/g, " ")}).`;
  return found.advice === undefined ? sentence : `${sentence} ${found.advice}`;
}

/** Exit status on success. */
export const exitDone = 0;
/** Exit status on failure. */
export const exitFailed = 1;
/** Exit status on a usage error. */
export const exitUsage = 2;

/** Wraps a command's action: errors become one sentence and an exit status. */
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

/** Prints an error and exits. */
export function fail(error: unknown): never {
  // For example `head`, which closes the pipe early.
  if (isOutputClosed(error)) process.exit(exitDone);
  return failServing(error);
}

/** Whether the reader of the output has exited. */
export function isOutputClosed(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === "EPIPE";
}

/** `fail` for a server command: a closed output does not change its exit status. */
export function failServing(error: unknown): never {
  process.stderr.write(`flagkeep: ${harmless(toSentence(error))}\n`);
  process.exit(isWrongCall(error) ? exitUsage : exitFailed);
}

/** What went wrong and what to do about it. */
function toSentence(error: unknown): string {
  if (error instanceof InvalidFieldError) return fieldSentence(error);
  if (error instanceof NotFoundError && error.what !== undefined)
    return `${error.what[0]!.toUpperCase()}${error.what.slice(1)} does not exist.`;
  if (error instanceof AppError) {
    return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  }
  // For unexpected errors the stack trace is more useful than a short message.
  return (
    systemErrorMessage(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
  );
}

function isWrongCall(error: unknown): boolean {
  return error instanceof InvalidSettingError || error instanceof InvalidFieldError;
}

/** API messages rely on the response's field to name their subject. */
function fieldSentence({ field, message }: InvalidFieldError): string {
  if (field === "scopes")
    return `${message}. Valid scopes are, for example, feature_flag:read, project:write, or * for all.`;
  if (field === null) return message;
  return message
    .replace(/^This field /, `The ${field} `)
    .replace(/^Ensure this field /, `Ensure that the ${field} `);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export function print(text = ""): void {
  process.stdout.write(`${harmless(text)}\n`);
}

export function printTable(headings: readonly string[], rows: readonly (readonly string[])[]): void {
  const columns = process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY;
  for (const line of tableLines(headings, rows, columns)) print(line);
}

/**
 * A table with columns as wide as needed; if wider than the terminal, each row becomes a list.
 *
 * @param terminalColumns width of the terminal.
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
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** `3 d 4 h`, `5 min 6 s`: the two largest units. */
export function formatDuration(seconds: number): string {
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

/** Parses an option as a positive integer. */
export function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Expected a positive integer.");
  return Number(text);
}

/** Collects the values of a repeatable option in order. */
export const collect = <Value>(parse: (text: string) => Value) => {
  return (text: string, before: Value[] | undefined): Value[] => [...(before ?? []), parse(text)];
};

/**
 * Accepts a file or folder name. Rejects an empty one, for example from an unset variable, which would mean the current
 * folder.
 */
export function fileName(text: string): string {
  if (text === "") throw new InvalidArgumentError("Expected the name of a file or folder.");
  return text;
}

export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("Expected an integer, 0 or more.");
  return Number(text);
}

/** Parses `7d`, `12h`, `30m`, `10s` or 0 to seconds. */
export function parseDuration(text: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text);
  if (text !== "0" && match === null) {
    throw new InvalidArgumentError("Expected a duration, for example 7d, 12h or 30m, or 0.");
  }
  const unit = { s: 1, m: 60, h: 3_600, d: 86_400 }[(match?.[2] ?? "s") as "s"];
  return Number(match?.[1] ?? 0) * unit;
}

/** Parses `90d`, `12h` or `30m` to that time from now. */
export function durationFromNow(text: string): Date {
  const match = /^([1-9]\d{0,5})([mhd])$/.exec(text);
  if (match === null) throw new InvalidArgumentError("Expected a duration, for example 90d, 12h or 30m.");
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] as "m"];
  return new Date(Date.now() + Number(match[1]) * unitMs);
}

/** `flagkeep keys create` */
export function getPath(command: Command): string {
  return command.parent === null ? command.name() : `${getPath(command.parent)} ${command.name()}`;
}

const shapes = new WeakMap<Command, TSchema>();

/** Adds `--json` with the schema of its output to a command. */
export function withJson(
  command: Command,
  shape: TSchema,
  description = "print the result as JSON",
): Command {
  describeJson(command, shape);
  return command.option("--json", description);
}

/** Sets the output schema of a command that defines `--json` itself. */
export function describeJson(command: Command, shape: TSchema): void {
  shapes.set(command, shape);
}

export function getJsonShape(command: Command): TSchema | undefined {
  return shapes.get(command);
}
