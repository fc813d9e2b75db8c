/** The executable has a second role beside the command line: the engine, which the front starts. */

/** The hidden command of the engine's role. */
export const engineRole = "engine-process";

/** How to start this executable again; from a checkout Bun runs the sources. */
export function ownCommand(): string[] {
  return Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
}

/** How to start this executable in the engine's role. */
export function engineCommand(): string[] {
  return [...ownCommand(), engineRole];
}
