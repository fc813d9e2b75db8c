/** Entries of the palette: recent pages, objects found by the server, pages, and actions. Loaded when it opens. */

import { keyCharacters } from "../../../flags/rules/shared-rules.ts";
import { queryString, request } from "../lib/api.ts";
import { recentPages } from "../lib/recent.ts";
import { to } from "../lib/router.ts";
import { serverPath } from "../lib/server.ts";
import { inProject, project, signOut } from "../lib/session.ts";
import { chooseTheme, themeNames } from "../lib/theme.ts";
import { messages } from "../messages/index.ts";
import { draftFromQuery, kindOfQuery, type Query } from "../model/insight.ts";
import type { IconName } from "./icons.tsx";
import { menuPages } from "./menu-pages.ts";

const w = messages.frame;
const foundMax = 6;
const recentMax = 6;
/** Flags that get an action of their own. */
const switchedMax = 2;

export interface FoundFlag {
  id: number;
  key: string;
  active: boolean;
  can_edit: boolean;
  tags: string[];
}

export interface Entry {
  group: keyof typeof w.paletteGroups;
  text: string;
  icon: IconName;
  act: () => void;
  /** Distinguishes entries of one name. */
  id: string;
}

export interface PaletteActions {
  route: (path: string) => void;
  openHelp: () => void;
  /** Turns a flag on or off, or asks first where that is required. */
  flip: (flag: FoundFlag) => void;
}

const iconByFolder: Record<string, IconName> = {
  flags: "flag",
  dashboards: "dashboards",
  cohorts: "cohorts",
  persons: "user",
  experiments: "target",
  surveys: "live",
  "early-access": "play",
};

/** Of inputs such as "turn off checkout", which name an action and its object. */
const verb = /^(?:turn (?:on|off)|create flag)\s+/i;

const matching = (entries: Entry[], text: string): Entry[] =>
  entries.filter((entry) => entry.text.toLowerCase().includes(text.toLowerCase()));

/** Pages that were opened last. */
export function recentEntries(text: string, { route }: PaletteActions): Entry[] {
  const all = recentPages(project.value?.id).map(
    ({ path, title }): Entry => ({
      group: "recent",
      text: title,
      id: path,
      icon: iconByFolder[path.split("/")[0]!] ?? "history",
      act: () => route(to(path)),
    }),
  );
  return matching(all, text).slice(0, recentMax);
}

/** Pages, and actions that name no object. */
export function fixedEntries(text: string, { route, openHelp }: PaletteActions): Entry[] {
  const all: Entry[] = [
    ...menuPages.map(
      ([name, icon]): Entry => ({
        group: "pages",
        text: w.pages[name],
        icon,
        id: `page ${name}`,
        act: () => route(to(name)),
      }),
    ),
    ...Object.entries(messages.settings.tabs).map(
      ([tab, name]): Entry => ({
        group: "settings",
        text: w.settingsPage(name),
        icon: "settings",
        id: `settings ${tab}`,
        act: () => route(to("settings", { tab })),
      }),
    ),
    {
      group: "actions",
      text: w.actions.newFlag,
      icon: "plus",
      id: "new flag",
      act: () => route(to("flags", { new: "1" })),
    },
    ...themeNames.map(
      (theme): Entry => ({
        group: "actions",
        text: w.actions.theme(w.themes[theme]),
        id: theme,
        icon: theme === "dark" ? "moon" : theme === "light" ? "sun" : "system",
        act: () => chooseTheme(theme),
      }),
    ),
    { group: "actions", text: w.actions.shortcuts, icon: "settings", id: "help", act: openHelp },
    {
      group: "actions",
      text: w.actions.docs,
      icon: "link",
      id: "docs",
      act: () => location.assign(`${serverPath}/docs/`),
    },
    {
      group: "actions",
      text: w.actions.signOut,
      icon: "user",
      id: "out",
      act: () => void signOut(),
    },
  ];
  return matching(all, text);
}

/** Objects of the project by name. A list that cannot be read has no entries. */
export async function findEntries(
  text: string,
  signal: AbortSignal,
  actions: PaletteActions,
): Promise<Entry[]> {
  const wanted = text.replace(verb, "");
  const { route, flip } = actions;
  const search = queryString({ search: wanted, limit: foundMax });
  const read = <Item>(path: string) =>
    request<{ results: Item[] }>(inProject(path), { signal }).then(
      ({ results }) => results.slice(0, foundMax),
      () => [] as Item[],
    );
  const [flags, dashboards, insights, cohorts, persons] = await Promise.all([
    read<FoundFlag>(`feature_flags/${search}`),
    read<Named>(`dashboards/${search}&exclude_generated=true`),
    read<Named & { query: Query }>(`insights/${search}`),
    read<Named>(`cohorts/${search}`),
    read<{ uuid: string; name: string; distinct_ids: string[] }>(`persons/${search}`),
  ]);
  const linked = (group: Entry["group"], folder: string, icon: IconName, items: Named[]) =>
    items.map(
      ({ id, name }): Entry => ({
        group,
        text: name || `#${id}`,
        icon,
        id: `${folder}/${id}`,
        act: () => route(to(`${folder}/${id}`)),
      }),
    );
  const isNewKey = keyCharacters.test(wanted) && !flags.some(({ key }) => key === wanted);
  const all: Entry[] = [
    ...linked(
      "flags",
      "flags",
      "flag",
      flags.map(({ id, key }) => ({ id, name: key })),
    ),
    ...flags
      .filter((flag) => flag.can_edit)
      .slice(0, switchedMax)
      .map(
        (flag): Entry => ({
          group: "actions",
          icon: "flag",
          id: `flip ${flag.id}`,
          text: flag.active ? w.actions.turnOff(flag.key) : w.actions.turnOn(flag.key),
          act: () => flip(flag),
        }),
      ),
    ...linked("dashboards", "dashboards", "dashboards", dashboards),
    ...insights.flatMap(({ id, name, query }): Entry[] => {
      const address = insightAddress(query);
      if (address === undefined) return [];
      return [
        {
          group: "insights",
          text: name || `#${id}`,
          icon: "chart",
          id: `insights/${id}`,
          act: () => route(address),
        },
      ];
    }),
    ...linked("cohorts", "cohorts", "cohorts", cohorts),
    ...persons.map(
      ({ uuid, name, distinct_ids: ids }): Entry => ({
        group: "persons",
        text: name || ids[0] || uuid,
        icon: "user",
        id: `persons/${uuid}`,
        act: () => route(to(`persons/${uuid}`)),
      }),
    ),
    ...(isNewKey
      ? [
          {
            group: "actions" as const,
            text: w.actions.createFlag(wanted),
            icon: "plus" as const,
            id: "create",
            act: () => route(to("flags", { new: wanted })),
          },
        ]
      : []),
  ];
  return wanted === text ? all : matching(all, text);
}

interface Named {
  id: number;
  name: string;
}

/** Where an insight can be opened; undefined if neither Explore nor SQL can show it. */
function insightAddress(query: Query): string | undefined {
  const source = (query.source as Query | undefined) ?? query;
  if (kindOfQuery(query) === "sql") return to("sql", { q: String(source.query) });
  const question = draftFromQuery(query);
  return question && to("explore", { question: JSON.stringify(question) });
}
