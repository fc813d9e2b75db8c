/** Command palette: pages, flags by key, persons, actions. */

import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { queryString, request } from "../lib/api.ts";
import { to } from "../lib/router.ts";
import { serverPath } from "../lib/server.ts";
import { inProject, signOut } from "../lib/session.ts";
import { chooseTheme, themeNames } from "../lib/theme.ts";
import { words } from "../messages/index.ts";
import { Icon, type IconName } from "./icons.tsx";
import { menuPages } from "./menu-pages.ts";

const w = words.frame;
const quietMs = 120;
const foundMax = 6;

interface Entry {
  group: keyof typeof w.paletteGroups;
  text: string;
  hint?: string;
  icon: IconName;
  act: () => void;
}

export function Palette({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const { route } = useLocation();
  const [text, setText] = useState("");
  const [found, setFound] = useState<Entry[]>([]);
  const [position, setPosition] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();

  // A layout effect: the next keystroke must reach the input.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    dialog.current?.showModal();
    return () => {
      dialog.current?.close();
      if (before?.isConnected) before.focus();
    };
  }, []);

  const fixed: Entry[] = [
    ...menuPages.map(
      ([name, icon]): Entry => ({ group: "pages", text: w.pages[name], icon, act: () => route(to(name)) }),
    ),
    {
      group: "actions",
      text: w.actions.newFlag,
      icon: "plus",
      act: () => route(to("flags", { new: "1" })),
    },
    ...themeNames.map(
      (theme): Entry => ({
        group: "actions",
        text: w.actions.theme(w.themes[theme]),
        icon: theme === "dark" ? "moon" : theme === "light" ? "sun" : "system",
        act: () => chooseTheme(theme),
      }),
    ),
    { group: "actions", text: w.actions.shortcuts, icon: "settings", act: onHelp },
    {
      group: "actions",
      text: w.actions.docs,
      icon: "link",
      act: () => location.assign(`${serverPath}/docs/`),
    },
    { group: "actions", text: w.actions.signOut, icon: "user", act: () => void signOut() },
  ];
  const wanted = text.trim().toLowerCase();
  const entries = [...found, ...fixed.filter((entry) => entry.text.toLowerCase().includes(wanted))];
  const chosen = Math.min(position, entries.length - 1);

  useEffect(() => {
    setPosition(0);
    if (wanted === "") {
      setFound([]);
      return;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      void look(wanted, controller.signal, route).then((entries) => {
        if (!controller.signal.aborted) setFound(entries);
      });
    }, quietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [wanted]);

  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.act();
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label={w.palette}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="palette-field">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={chosen >= 0 ? `${id}-${chosen}` : undefined}
          aria-label={w.palette}
          placeholder={w.search}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setPosition(Math.min(chosen + 1, entries.length - 1));
            else if (event.key === "ArrowUp") setPosition(Math.max(chosen - 1, 0));
            else if (event.key === "Enter") run(entries[chosen]);
            else return;
            event.preventDefault();
          }}
        />
      </div>
      <ul id={`${id}-list`} role="listbox" aria-label={w.palette}>
        {entries.map((entry, index) => (
          <li
            key={`${entry.group} ${entry.text}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            ref={(element) => {
              if (index === chosen) element?.scrollIntoView({ block: "nearest" });
            }}
            onPointerMove={() => setPosition(index)}
            onClick={() => run(entry)}
          >
            <Icon name={entry.icon} />
            <span>{entry.text}</span>
            <span class="hint">{entry.hint ?? w.paletteGroups[entry.group]}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p class="palette-empty">{w.paletteEmpty}</p>}
    </dialog>
  );
}

async function look(wanted: string, signal: AbortSignal, route: (path: string) => void): Promise<Entry[]> {
  const search = queryString({ search: wanted, limit: foundMax });
  const read = <Item,>(path: string) =>
    request<{ results: Item[] }>(inProject(path), { signal }).then(
      ({ results }) => results,
      () => [] as Item[],
    );
  const [flags, persons] = await Promise.all([
    read<{ id: number; key: string; name: string }>(`feature_flags/${search}`),
    read<{ uuid: string; name: string; distinct_ids: string[] }>(`persons/${search}`),
  ]);
  return [
    ...flags.map(
      ({ id, key }): Entry => ({
        group: "flags",
        text: key,
        icon: "flag",
        act: () => route(to(`flags/${id}`)),
      }),
    ),
    ...persons.slice(0, foundMax).map(
      ({ uuid, name, distinct_ids: ids }): Entry => ({
        group: "persons",
        text: name || ids[0] || uuid,
        icon: "user",
        act: () => route(to(`persons/${uuid}`)),
      }),
    ),
  ];
}
