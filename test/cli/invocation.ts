/** Valid and invalid invocations of a command, and invalid ones that many commands share. */

/** Where commands are run. */
export interface World {
  dataDir: string;
  /** For files that commands write. */
  folder: string;
  isRunning: boolean;
  /** Ids of keys by their labels. */
  keys: Record<string, string>;
  /** A file created by `backup create`. */
  backup: string;
}

export interface Invocation {
  /** Arguments after the command's name; `--data-dir` and `--json` are added. */
  args: (world: World) => string[];
  /** Exit status; default: 0. */
  code?: (world: World) => number;
  /** It does not run at the same time as others: without a server only one process can open the events. */
  isAlone?: true;
  wrong: WrongCall[];
}

export interface WrongCall {
  args: string[];
  code: 1 | 2;
  /** A part of the one line on standard error. */
  says: string;
}

export const unknownProject: WrongCall = {
  args: ["--project", "99"],
  code: 1,
  says: "Project 99 does not exist.",
};
export const projectNotANumber: WrongCall = { args: ["--project", "one"], code: 2, says: "positive integer" };
export const missing = (name: string): WrongCall => ({
  args: [],
  code: 2,
  says: `missing required argument '${name}'`,
});
export const inProject = (...args: string[]) => [...args, "--project", "1"];
