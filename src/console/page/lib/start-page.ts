/** The page that `/console/` opens. */

import { request } from "./api.ts";
import { inProject, project } from "./session.ts";
import { readPreference } from "./storage.ts";

/** Storage key of the choice in My account. */
export const startPageKey = "start-page";
const recentMs = 30 * 86_400_000;

/**
 * The chosen page; else Get started until the first event arrived, Overview with a page view in the last 30 days, or
 * Flags.
 *
 * @param known names of the existing pages besides Flags.
 */
export async function startPage(known: readonly string[], signal: AbortSignal): Promise<string> {
  const chosen = readPreference(startPageKey);
  if (chosen && (chosen === "flags" || known.includes(chosen))) return chosen;
  if (!project.value?.ingested_event && !(await hasEvents(signal))) return "start";
  return known.includes("overview") && (await hasPageViews(signal)) ? "overview" : "flags";
}

/** The first event may have arrived after the session was loaded. */
const hasEvents = (signal: AbortSignal) =>
  request<{ ingested_event?: boolean }>(inProject(""), { signal }).then(
    ({ ingested_event: isThere }) => isThere !== false,
    () => true,
  );

const hasPageViews = (signal: AbortSignal) =>
  request<{ results: { name: string; last_seen_at: string | null }[] }>(
    inProject("event_definitions/?search=%24pageview"),
    { signal },
  ).then(
    ({ results }) =>
      results.some(
        ({ name, last_seen_at: at }) =>
          name === "$pageview" && at !== null && Date.now() - Date.parse(at) < recentMs,
      ),
    () => false,
  );
