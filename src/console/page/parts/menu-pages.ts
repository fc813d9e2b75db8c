/** The pages of the menu, in its order. */

import type { words } from "../words/index.ts";
import type { IconName } from "./icons.tsx";

export const menuPages = [
  ["start", "start"],
  ["flags", "flag"],
  ["live", "live"],
  ["explore", "chart"],
  ["sql", "sql"],
  ["persons", "persons"],
  ["cohorts", "cohorts"],
  ["dashboards", "dashboards"],
  ["activity", "activity"],
  ["settings", "settings"],
  ["instance", "instance"],
] as const satisfies readonly (readonly [keyof typeof words.frame.pages, IconName])[];
