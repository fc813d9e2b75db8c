/** The projects of commands that work on several. */

import type { Caller } from "../../src/operations/operation.ts";
import { listAllProjects } from "../../src/operations/projects.ts";
import { type CallOptions, getServer } from "./server.ts";

/** The given project, or all; on a server, the unarchived ones. */
export async function projectIds(caller: Caller, options: CallOptions): Promise<number[]> {
  if (options.project !== undefined) return [options.project];
  const listed = [false, true].map((archived) => caller.list(listAllProjects, { archived }));
  const [open, archived] = (await Promise.all(listed)) as { id: number }[][];
  return [...open!, ...(getServer(options) === undefined ? archived! : [])].map(({ id }) => id);
}
