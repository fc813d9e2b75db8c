/** Errors of the operating system and SQLite as sentences for operators, instead of a stack trace. */

const causes: Record<string, string> = {
  EACCES: "Permission was denied",
  EPERM: "Permission was denied",
  EROFS: "The file system is read-only",
  ENOSPC: "The disk is full",
  EDQUOT: "The disk quota is exceeded",
  ENOENT: "A file or folder is missing",
  ENOTDIR: "A part of the path is not a folder",
  EISDIR: "The path is a folder",
  EIO: "The disk reports an error",
  EMFILE: "Too many files are open",
  SQLITE_READONLY: "The data directory cannot be written",
  SQLITE_CANTOPEN: "A store cannot be opened",
  SQLITE_PERM: "A store cannot be opened",
  SQLITE_FULL: "The disk is full",
  SQLITE_IOERR: "The disk reports an error",
  SQLITE_BUSY: "Another process holds the lock of a store",
  SQLITE_CORRUPT: "A store is corrupt",
  SQLITE_NOTADB: "A store is corrupt",
};
const advice: Record<string, string> = {
  EACCES: "Run the command as the owner of the files, or fix their permissions.",
  ENOSPC: "Free disk space, then try again.",
  SQLITE_BUSY: "Try again.",
  SQLITE_CORRUPT: "Run `flagkeep doctor`, and restore a backup.",
};
const sameAdvice: Record<string, string> = {
  EPERM: "EACCES",
  EROFS: "EACCES",
  SQLITE_READONLY: "EACCES",
  SQLITE_CANTOPEN: "EACCES",
  SQLITE_PERM: "EACCES",
  EDQUOT: "ENOSPC",
  SQLITE_FULL: "ENOSPC",
  SQLITE_NOTADB: "SQLITE_CORRUPT",
};

/** Undefined for other errors. */
export function systemErrorMessage(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code !== "string") return undefined;
  // SQLITE_READONLY_DIRECTORY and the like are kinds of SQLITE_READONLY.
  const kind = code.startsWith("SQLITE_") ? code.split("_").slice(0, 2).join("_") : code;
  const cause = causes[kind];
  if (cause === undefined) return undefined;
  const whatToDo = advice[sameAdvice[kind] ?? kind];
  const sentence = `${cause} (${error.message.replaceAll(/\s+/g, " ")}).`;
  return whatToDo === undefined ? sentence : `${sentence} ${whatToDo}`;
}
