/** The executable has a second role beside the command line: the engine, which the front starts. */

/** The hidden command of the engine's role. */
export const engineRole = "engine-process";

/** How to start this executable in the engine's role; from a checkout Bun runs the sources. */
export function engineCommand(): string[] {
  const isCompiled = Bun.main.startsWith("/$bunfs/");
  return isCompiled ? [process.execPath, engineRole] : [process.execPath, Bun.main, engineRole];
}
