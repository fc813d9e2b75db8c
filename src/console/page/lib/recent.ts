/** Pages of single objects that the user opened last, for the palette. */

import { readPreference, savePreference } from "./storage.ts";

export interface RecentPage {
  project: number;
  /** Below the console's root. */
  path: string;
  title: string;
}

const preference = "recent";
const retainedMax = 20;
/** Folders whose pages are of single objects. */
const objectPath = /^(?:flags|experiments|surveys|early-access|dashboards|cohorts|persons)\/[^/]+$/;

function readAll(): RecentPage[] {
  try {
    const stored = JSON.parse(readPreference(preference) ?? "[]") as unknown;
    return Array.isArray(stored) ? stored : [];
  } catch {
    return [];
  }
}

/** Records a visit if the page is of a single object. The last title of a path wins. */
export function recordVisit(page: RecentPage): void {
  if (!objectPath.test(page.path) || page.path.endsWith("/new")) return;
  const others = readAll().filter(({ project, path }) => project !== page.project || path !== page.path);
  savePreference(preference, JSON.stringify([page, ...others].slice(0, retainedMax)));
}

/** The latest first. */
export function recentPages(project: number | undefined): RecentPage[] {
  return readAll().filter((page) => page.project === project);
}

/** Titles may be names of people: they do not outlast the session. */
export function forgetVisits(): void {
  savePreference(preference, null);
}
