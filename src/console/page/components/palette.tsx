/** Command palette. Its field is shown immediately; the entries load when it opens. */

import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { criticalTag } from "../../../flags/rules/shared-rules.ts";
import { reloadResources } from "../lib/resource.ts";
import { to } from "../lib/router.ts";
import { messages } from "../messages/index.ts";
import { useApprovals } from "../model/approvals.ts";
import { changeFlag } from "../model/flags.ts";
import { Icon } from "./icons.tsx";
import type { Entry, FoundFlag } from "./palette-entries.ts";
import { toast, toastError } from "./toast.tsx";

type Search = typeof import("./palette-entries.ts");

const w = messages.frame;
const quietMs = 120;
export function Palette({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const { route } = useLocation();
  const [text, setText] = useState("");
  const [found, setFound] = useState<Entry[]>([]);
  const [position, setPosition] = useState(0);
  const [search, setSearch] = useState<Search>();
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

  const approvals = useApprovals();
  const flip = async (flag: FoundFlag, isUndo = false) => {
    // Both ask for more on the flag's own page.
    if (flag.tags.includes(criticalTag) || (await approvals.whenKnown(flag))) {
      return route(to(`flags/${flag.id}`));
    }
    try {
      const { active } = await changeFlag(flag.id, { active: !flag.active });
      const text = active ? messages.flags.switchedOn(flag.key) : messages.flags.switchedOff(flag.key);
      toast(text, isUndo ? undefined : () => void flip({ ...flag, active }, true));
      reloadResources();
    } catch (error) {
      toastError(error);
    }
  };
  const actions = { route, openHelp: onHelp, flip: (flag: FoundFlag) => void flip(flag) };
  const wanted = text.trim();
  const entries: Entry[] = search
    ? [...search.recentEntries(wanted, actions), ...found, ...search.fixedEntries(wanted, actions)].filter(
        ({ id: own }, index, all) => all.findIndex((entry) => entry.id === own) === index,
      )
    : [];
  const chosen = Math.min(position, entries.length - 1);

  useEffect(() => {
    import("./palette-entries.ts").then(setSearch, toastError);
  }, []);
  useEffect(() => {
    setPosition(0);
    if (wanted === "" || search === undefined) {
      setFound([]);
      return;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      void search.findEntries(wanted, controller.signal, actions).then((entries) => {
        if (!controller.signal.aborted) setFound(entries);
      });
    }, quietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [wanted, search]);

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
            key={entry.id}
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
            <span class="hint">{w.paletteGroups[entry.group]}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && search && <p class="palette-empty">{w.paletteEmpty}</p>}
    </dialog>
  );
}
