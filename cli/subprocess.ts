/**
 * Process kinds of the executable in addition to the command line, which the server process starts: the engine, HTTP workers,
 * and the check of the SQLite files.
 */

/** Hidden command of the engine process. */
export const engineProcessKind = "engine-process";

/** Hidden command that checks the SQLite files. */
export const sqliteCheckRole = "sqlite-check-process";

/** Hidden command of an HTTP worker. */
export const workerProcessKind = "worker-process";

/** Command that starts this executable again; in a checkout Bun runs the sources. */
export function selfCommand(): string[] {
  return Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
}

/** Command that starts the check of the SQLite files. */
export function sqliteCheckCommand(): string[] {
  return [...selfCommand(), sqliteCheckRole];
}

/** Command that starts the engine process. */
export function engineCommand(): string[] {
  return [...selfCommand(), engineProcessKind];
}

/** Command that starts an HTTP worker. */
export function workerCommand(): string[] {
  return [...selfCommand(), workerProcessKind];
}
