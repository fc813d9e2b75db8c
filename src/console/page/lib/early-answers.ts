/**
 * What every visit asks first: who is there, and which projects there are. It is asked by the small script that runs before
 * the page's own, which takes the answers from here.
 */

import { ownHeader, serverPath, sessionPath } from "./server.ts";

export const mePath = "/api/users/@me/";
/** All that the page can choose among. */
export const projectsPath = "/api/projects/?limit=500";

declare global {
  /** By path, what was answered; undefined: no answer that is of use. Each is taken once. */
  var flagkeepEarlyAnswers: Map<string, Promise<unknown>> | undefined;
}

/** Asks, if the page is one for which that is of use. */
export function askEarly(): void {
  if (location.pathname === `${serverPath}/console/setup`) return;
  const answers = new Map<string, Promise<unknown>>();
  globalThis.flagkeepEarlyAnswers = answers;
  const get = (path: string) => answers.set(path, answerOf(path));
  get(sessionPath);
  // Written into the page by the server where somebody is signed in; else the others would be refused.
  if (document.documentElement.dataset.signedIn === undefined) return;
  for (const path of [mePath, projectsPath]) get(path);
}

async function answerOf(path: string): Promise<unknown> {
  try {
    const headers = { ...ownHeader, Accept: "application/json" };
    const response = await fetch(serverPath + path, { credentials: "same-origin", headers });
    return response.ok ? await response.json() : undefined;
  } catch {
    // Whoever takes it asks again, and meets the error.
    return undefined;
  }
}

/** Resolves to what was answered early; undefined when it has to be asked for. */
export async function takeEarly(path: string): Promise<unknown> {
  const answers = globalThis.flagkeepEarlyAnswers;
  const answer = answers?.get(path);
  answers?.delete(path);
  return await answer;
}
