/**
 * Finds paths that have places for names or ids, through Elysia: one Elysia route per path, so that the most exact path is
 * chosen before the method.
 */

import { Elysia } from "elysia";
import {
  type DispatchDeps,
  noParams,
  places,
  type ServedPath,
  type ServedPaths,
  serve,
  spellingsOf,
} from "./dispatch.ts";

/**
 * A router for these paths, with and without a slash at the end.
 *
 * @param isSecure By itself Elysia looks for the path behind a host of usual length, and finds none behind `api` or `::1`.
 *                 Told not to, it looks behind `http://`; behind `https://` it would take the second slash for the path.
 * @param nowhere  serves what is none of these paths.
 */
export function routerOf(
  paths: ServedPaths["others"],
  nowhere: ServedPath,
  isSecure: boolean,
  deps: DispatchDeps,
): { fetch(request: Request): Response | Promise<Response> } {
  const router = new Elysia({ name: "flagkeep", handler: { standardHostname: isSecure } });
  for (const [path, served] of paths) {
    const names = [...path.matchAll(places)].map(([all, name]) => name ?? all);
    for (const spelling of spellingsOf(path)) {
      router.all(
        numbered(spelling),
        ({ request, params }) => serve(served, request, renamed(params, names), deps),
        { parse: "none", detail: { hide: true } },
      );
    }
  }
  return router.all("*", ({ request }) => serve(nowhere, request, {}, deps), { parse: "none" });
}

/** The router wants one name per place, while routes call the same place `id` and `feature_flag_id`. */
function numbered(path: string): string {
  let place = 0;
  return path.replace(/:\w+/g, () => `:p${place++}`);
}

/** Stands for a part that is no text, such as `%ff`: the name of nothing. */
const unreadable = "\uFFFD";

function renamed(params: Record<string, string | null> | undefined, names: readonly string[]) {
  if (names.length === 0 || params === undefined) return noParams;
  return Object.fromEntries(
    names.map((name, place) => [name, params[name === "*" ? "*" : `p${place}`] ?? unreadable]),
  );
}
