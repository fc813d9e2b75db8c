/**
 * Prefetches the session and the project list, which every visit needs. A small script sends the requests before the
 * page's own script runs, which takes the responses from here.
 */

import { csrfHeader, serverPath, sessionPath } from "./server.ts";

export const mePath = "/api/users/@me/";
/** All projects that the page can switch to. */
export const projectsPath = "/api/projects/?limit=500";

declare global {
  /** Responses by path, each used once; undefined: no usable response. */
  var flagkeepEarlyAnswers: Map<string, Promise<unknown>> | undefined;
}

/** Sends the requests, if the page can use them. */
export function prefetch(): void {
  if (location.pathname === `${serverPath}/console/setup`) return;
  const answers = new Map<string, Promise<unknown>>();
  globalThis.flagkeepEarlyAnswers = answers;
  const get = (path: string) => answers.set(path, getAnswer(path));
  get(sessionPath);
  // The server sets this if a user is signed in; otherwise the other requests would be rejected.
  if (document.documentElement.dataset.signedIn === undefined) return;
  for (const path of [mePath, projectsPath]) get(path);
}

async function getAnswer(path: string): Promise<unknown> {
  try {
    const headers = { ...csrfHeader, Accept: "application/json" };
    const response = await fetch(serverPath + path, { credentials: "same-origin", headers });
    return response.ok ? await response.json() : undefined;
  } catch {
    // The consumer repeats the request and handles the error.
    return undefined;
  }
}

/** Resolves to the prefetched response; undefined if it has to be requested. */
export async function takePrefetched(path: string): Promise<unknown> {
  const answers = globalThis.flagkeepEarlyAnswers;
  const answer = answers?.get(path);
  answers?.delete(path);
  return await answer;
}
