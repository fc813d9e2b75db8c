/** Pages of the menu, in order, by group. */

import type { messages } from "../messages/index.ts";
import type { IconName } from "./icons.tsx";

export type PageName = keyof typeof messages.frame.pages;

interface MenuGroup {
  /** Label of the group; absent where a divider is enough. */
  name?: keyof typeof messages.frame.menuGroups;
  pages: readonly (readonly [PageName, IconName])[];
}

export const menuGroups: readonly MenuGroup[] = [
  { pages: [["overview", "home"]] },
  {
    name: "flags",
    pages: [
      ["flags", "flag"],
      ["experiments", "target"],
      ["surveys", "live"],
      ["early-access", "play"],
    ],
  },
  {
    name: "analytics",
    pages: [
      ["explore", "chart"],
      ["dashboards", "dashboards"],
      ["events", "live"],
      ["sql", "sql"],
    ],
  },
  {
    name: "people",
    pages: [
      ["persons", "persons"],
      ["cohorts", "cohorts"],
    ],
  },
  {
    pages: [
      ["activity", "activity"],
      ["settings", "settings"],
      ["instance", "instance"],
    ],
  },
];

/** All pages that users can jump to. */
export const menuPages: readonly (readonly [PageName, IconName])[] = [
  ...menuGroups.flatMap(({ pages }) => pages),
  ["start", "start"],
];
