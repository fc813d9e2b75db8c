/** Saved views of the flag list that a project's members share. */

import { InvalidFieldError } from "../lib/errors.ts";

/** A name, and the filters and sort order as a query string of the console's flag list. */
export interface FlagView {
  name: string;
  query: string;
}

export const flagViewsMax = 50;
export const viewNameLengthMax = 100;
export const viewQueryLengthMax = 1_000;

/** Views as stored. @throws {InvalidFieldError} too many, a blank name or the same name twice. */
export function checkFlagViews(views: readonly FlagView[]): FlagView[] {
  const fail = (message: string) => new InvalidFieldError("flag_views", "invalid_input", message);
  if (views.length > flagViewsMax) throw fail(`A project can have at most ${flagViewsMax} saved views.`);
  const names = new Set<string>();
  return views.map(({ name, query }) => {
    const trimmed = name.trim();
    if (trimmed === "") throw fail("The name of a saved view must not be blank.");
    if (names.has(trimmed)) throw fail(`Two saved views have the name ${JSON.stringify(trimmed)}.`);
    names.add(trimmed);
    return { name: trimmed, query };
  });
}
