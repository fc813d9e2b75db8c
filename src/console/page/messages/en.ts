/** All messages of the page in English. Other languages have the same shape; a missing message does not compile. */

import { activity } from "./en/activity.ts";
import { signing } from "./en/auth.ts";
import { dashboards } from "./en/dashboards.ts";
import { experiments } from "./en/experiments.ts";
import { explore } from "./en/explore.ts";
import { flag } from "./en/flag.ts";
import { flags } from "./en/flags.ts";
import { instance } from "./en/instance.ts";
import { frame } from "./en/layout.ts";
import { live, start } from "./en/live.ts";
import { notes } from "./en/notes.ts";
import { overview } from "./en/overview.ts";
import { cohorts, people } from "./en/people.ts";
import { settings } from "./en/settings.ts";
import { share } from "./en/share.ts";
import { sql } from "./en/sql.ts";
import { webhooks } from "./en/webhooks.ts";

export const words = {
  activity,
  cohorts,
  dashboards,
  experiments,
  explore,
  flag,
  flags,
  frame,
  instance,
  live,
  overview,
  people,
  settings,
  notes,
  share,
  signing,
  sql,
  start,
  webhooks,
};
export type Words = typeof words;
