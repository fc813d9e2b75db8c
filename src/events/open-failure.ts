/** Tells why DuckDB cannot open or read its file: only a broken file may be replaced by a rebuilt one. */

export type OpenFailure =
  /** The file is not what DuckDB wrote. */
  | "file_broken"
  /** The file may be whole; the log beside it, of what is not in the file yet, is not. */
  | "log_broken"
  /** Anything else: in use, of a newer version, no memory, no disk, no permission. */
  | "other";

/** Said while reading a broken file, but not its fault. */
const innocent = [
  /could not set lock|conflicting lock/i,
  /version number|newer version|newer DuckDB/i,
  /out of memory|failed to allocate|cannot allocate|bad_alloc/i,
  /no space left|disk quota|read-only file system|permission denied|too many open files|input\/output error/i,
];

const brokenFile = [
  /not a valid DuckDB database file/i,
  /corrupt database file/i,
  /could not read enough bytes from file/i,
  /failed to deserialize|serialization error/i,
];

/** The versions in DuckDB's complaint about a file of a newer DuckDB. */
export function newerFormatOf(error: unknown): { found: number; known: number } | undefined {
  const match = /version number (\d+), but we can only read versions between \d+ and (\d+)/.exec(
    String(error),
  );
  const [found, known] = [Number(match?.[1]), Number(match?.[2])];
  return match !== null && found > known ? { found, known } : undefined;
}

export function openFailureOf(error: unknown): OpenFailure {
  const text = String(error);
  if (innocent.some((pattern) => pattern.test(text))) return "other";
  if (/while replaying WAL|corrupt WAL/i.test(text)) return "log_broken";
  return brokenFile.some((pattern) => pattern.test(text)) ? "file_broken" : "other";
}
