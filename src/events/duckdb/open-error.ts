/**
 * Classifies DuckDB's errors: only a corrupt file may be replaced by a rebuilt one, and lack of space is not the fault of
 * a statement's text.
 */

export type OpenFailure =
  /** The file is corrupt. */
  | "file_broken"
  /** The file may be intact; its write-ahead log is corrupt. */
  | "log_broken"
  /** Anything else: in use, newer version, memory, disk, permissions. */
  | "other";

/** When the error occurred: while the store was opened, or later. */
export type StoreAccess = "opening" | "reading";

/** Prefixes of DuckDB's errors. */
const ofDuckDb = /^(?:[A-Z][A-Za-z-]* )+Error: /;
/** Errors that no user's statement can cause; a statement can make DuckDB quote arbitrary text. */
const ofTheStore = /^(?:IO|FATAL|INTERNAL|Serialization) Error: /;

/** Errors that occur while reading a corrupt file but have other causes. */
const harmlessErrors = [
  /could not set lock|conflicting lock/i,
  /version number|newer version|newer DuckDB/i,
  /out of memory|failed to allocate|cannot allocate|bad_alloc/i,
  /no space left|disk quota|read-only file system|permission denied|too many open files|input\/output error/i,
  /could not write (?:all|file)/i,
];

const brokenFile = [
  /not a valid DuckDB database file/i,
  /corrupt database file/i,
  /could not read enough bytes from file/i,
  /failed to deserialize|serialization error/i,
  /failed to load metadata pointer/i,
];

/** The versions in DuckDB's error about a file of a newer DuckDB. */
export function getNewerFormat(error: unknown): { found: number; known: number } | undefined {
  const match = /version number (\d+), but we can only read versions between \d+ and (\d+)/.exec(
    String(error),
  );
  const found = Number(match?.[1]);
  const known = Number(match?.[2]);
  return match !== null && found > known ? { found, known } : undefined;
}

/**
 * @param use while opening, every DuckDB error without another known cause means a corrupt file; later, only errors
 * about the file do
 */
export function toOpenError(error: unknown, use: StoreAccess): OpenFailure {
  const text = duckDbMessage(error);
  if (!(use === "opening" ? ofDuckDb : ofTheStore).test(text)) return "other";
  if (isHarmless(error)) return "other";
  if (/while replaying WAL|corrupt WAL/i.test(text)) return "log_broken";
  return use === "opening" || brokenFile.some((pattern) => pattern.test(text)) ? "file_broken" : "other";
}

/**
 * Whether an error of reading the whole file means corruption, including an unreadable disk. Errors caused by another
 * process, memory or permissions say nothing about the file.
 */
export function isCorruption(error: unknown): boolean {
  return /input\/output error/i.test(duckDbMessage(error)) || !isHarmless(error);
}

/** Whether the machine or another process is the cause, not the file. */
function isHarmless(error: unknown): boolean {
  const text = duckDbMessage(error);
  return harmlessErrors.some((pattern) => pattern.test(text));
}

/** What DuckDB ran out of: memory, its limit of temporary files, or the disk that they are on. */
export type Shortage = "memory" | "temporary files" | "disk";

/** Why a query failed for lack of space; undefined for every other error. */
export function findShortage(error: unknown): Shortage | undefined {
  const text = duckDbMessage(error);
  if (/^Out of Memory Error: /.test(text))
    return text.includes("'max_temp_directory_size'") ? "temporary files" : "memory";
  // A query writes nothing but temporary files.
  const isDiskFull = /^IO Error: Could not write .*: (?:No space left on device|Disk quota exceeded)/s.test(
    text,
  );
  return isDiskFull ? "disk" : undefined;
}

/** Whether DuckDB's own limit of memory or of temporary files was reached. */
export function isOutOfMemory(error: unknown): boolean {
  const shortage = findShortage(error);
  return shortage !== undefined && shortage !== "disk";
}

/** After such an error, DuckDB rejects all statements until the file is reopened. */
export function isInvalidated(error: unknown): boolean {
  return /^FATAL Error: /.test(duckDbMessage(error));
}

/** The file may be corrupt, or DuckDB has a bug: the error does not show which. */
export function isAmbiguous(error: unknown): boolean {
  return /^(?:FATAL|INTERNAL) Error: /.test(duckDbMessage(error)) && !isHarmless(error);
}

/** The message of DuckDB's original error, which may be wrapped. */
export function duckDbMessage(error: unknown): string {
  let found = error;
  while (found instanceof Error && found.cause instanceof Error) found = found.cause;
  return found instanceof Error ? found.message : String(found);
}
