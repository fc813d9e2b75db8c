/** Settings of a project that are lists: saved views of the flag list, and goals of web analytics. */

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

/** An event, or a page by its path, that visitors are meant to reach; exactly one is not null. */
export interface WebGoal {
  name: string;
  event: string | null;
  path: string | null;
}

export const webGoalsMax = 20;
export const goalNameLengthMax = 200;
export const goalTargetLengthMax = 1_000;

/** Goals as stored: paths without query string and trailing slash. @throws {InvalidFieldError} */
export function checkWebGoals(goals: readonly Partial<WebGoal>[]): WebGoal[] {
  const fail = (message: string) => new InvalidFieldError("web_goals", "invalid_input", message);
  if (goals.length > webGoalsMax) throw fail(`A project can have at most ${webGoalsMax} goals.`);
  const names = new Set<string>();
  return goals.map(({ name = "", event = null, path = null }) => {
    const trimmed = name.trim();
    if (trimmed === "") throw fail("The name of a goal must not be blank.");
    if (names.has(trimmed)) throw fail(`Two goals have the name ${JSON.stringify(trimmed)}.`);
    names.add(trimmed);
    if ((event === null) === (path === null))
      throw fail(`The goal ${JSON.stringify(trimmed)} requires either an event or a path.`);
    if (event === "") throw fail(`The event of the goal ${JSON.stringify(trimmed)} must not be blank.`);
    if (path !== null && !path.startsWith("/"))
      throw fail(`The path of the goal ${JSON.stringify(trimmed)} must start with "/", for example /thanks.`);
    return { name: trimmed, event, path: path === null ? null : shownPath(path) };
  });
}

const shownPath = (path: string) => path.replace(/[?#].*$/s, "").replace(/(?<=.)\/$/, "");
