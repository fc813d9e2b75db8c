/** All words of the page in English. Another language has the same form; a missing text does not compile. */

import { activity } from "./en/activity.ts";
import { dashboards, explore } from "./en/explore.ts";
import { flag } from "./en/flag.ts";
import { flags } from "./en/flags.ts";
import { frame } from "./en/frame.ts";
import { instance } from "./en/instance.ts";
import { live, start } from "./en/live.ts";
import { cohorts, people } from "./en/people.ts";
import { settings } from "./en/settings.ts";
import { signing } from "./en/signing.ts";
import { sql } from "./en/sql.ts";

export const words = {
  activity,
  cohorts,
  dashboards,
  explore,
  flag,
  flags,
  frame,
  instance,
  live,
  people,
  settings,
  signing,
  sql,
  start,
};
export type Words = typeof words;
