/** Tells what DuckDB's complaints mean: only a broken file may be replaced by a rebuilt one. */

export type OpenFailure =
  /** The file is not what DuckDB wrote. */
  | "file_broken"
  /** The file may be whole; the log beside it, of what is not in the file yet, is not. */
  | "log_broken"
  /** Anything else: in use, of a newer version, no memory, no disk, no permission. */
  | "other";

/** When DuckDB complained: while the store was opened, or later. */
export type StoreUse = "opening" | "reading";

/** How DuckDB's own errors begin; those of other code do not. */
const ofDuckDb = /^(?:[A-Z][A-Za-z-]* )+Error: /;
/** Those that no statement of a user can bring about. A statement may well make DuckDB quote words of its own. */
const ofTheStore = /^(?:IO|FATAL|INTERNAL|Serialization) Error: /;

/** Said while reading a broken file, but not its fault. */
const innocent = [
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

/** The versions in DuckDB's complaint about a file of a newer DuckDB. */
export function newerFormatOf(error: unknown): { found: number; known: number } | undefined {
  const match = /version number (\d+), but we can only read versions between \d+ and (\d+)/.exec(
    String(error),
  );
  const [found, known] = [Number(match?.[1]), Number(match?.[2])];
  return match !== null && found > known ? { found, known } : undefined;
}

/**
 * @param use while the store is opened, whatever DuckDB says that is not known to be innocent means that the file is
 *            broken: nothing but the file can be the reason. Later only what it says of the file counts.
 */
export function openFailureOf(error: unknown, use: StoreUse): OpenFailure {
  const text = duckDbMessage(error);
  if (!(use === "opening" ? ofDuckDb : ofTheStore).test(text)) return "other";
  if (isInnocent(error)) return "other";
  if (/while replaying WAL|corrupt WAL/i.test(text)) return "log_broken";
  return use === "opening" || brokenFile.some((pattern) => pattern.test(text)) ? "file_broken" : "other";
}

/**
 * Whether a complaint about reading the whole file means that it is damaged. A disk that cannot be read is damage, too; what
 * another process, the memory or permissions are the reason of tells nothing of the file.
 */
export function isDamage(error: unknown): boolean {
  return /input\/output error/i.test(duckDbMessage(error)) || !isInnocent(error);
}

/** The machine or another process is the reason, not the file. */
function isInnocent(error: unknown): boolean {
  const text = duckDbMessage(error);
  return innocent.some((pattern) => pattern.test(text));
}

/** After such an error DuckDB answers nothing any more until the file is opened again. */
export function isInvalidated(error: unknown): boolean {
  return /^FATAL Error: /.test(duckDbMessage(error));
}

/** The file may be the reason, or a fault of DuckDB: it says no more than that it cannot go on. */
export function isDoubtful(error: unknown): boolean {
  return /^(?:FATAL|INTERNAL) Error: /.test(duckDbMessage(error)) && !isInnocent(error);
}

/** Of the error below those that were made of it. */
function duckDbMessage(error: unknown): string {
  let found = error;
  while (found instanceof Error && found.cause instanceof Error) found = found.cause;
  return found instanceof Error ? found.message : String(found);
}
