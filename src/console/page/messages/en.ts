/** Messages in English of the first page and of what is loaded with it. Other languages have the same shape; a missing message does not compile. */

import { activity } from "./en/activity.ts";
import { signing } from "./en/auth.ts";
import { flag } from "./en/flag.ts";
import { flags } from "./en/flags.ts";
import { frame } from "./en/layout.ts";
import { live, start } from "./en/live.ts";
import { notes } from "./en/notes.ts";
import { overview } from "./en/overview.ts";
import { settings } from "./en/settings.ts";
import { share } from "./en/share.ts";
import { webhooks } from "./en/webhooks.ts";

export const messages = {
  activity,
  flag,
  flags,
  frame,
  live,
  overview,
  settings,
  notes,
  share,
  signing,
  start,
  webhooks,
};
export type Messages = typeof messages;
