/** The current project, and a popover that searches the others and leads to a new one. */

import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { to } from "../lib/router.ts";
import { chooseProject, isAdmin, project, projects } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { Icon } from "./icons.tsx";

const w = messages.frame;
const shownMax = 50;

/** @param page stays open in another project */
export function ProjectSwitcher({ page }: { page: string }) {
  const [isOpen, setOpen] = useState(false);
  const holder = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onElsewhere = (event: Event) => {
      if (!holder.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", onElsewhere);
    addEventListener("focusin", onElsewhere);
    return () => {
      removeEventListener("pointerdown", onElsewhere);
      removeEventListener("focusin", onElsewhere);
    };
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div
      class="menu project-switcher"
      ref={holder}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !isOpen) return;
        close();
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <button
        ref={button}
        type="button"
        class="project-name"
        aria-expanded={isOpen}
        aria-label={w.currentProject(project.value?.name ?? "")}
        title={project.value?.name}
        onClick={() => setOpen(!isOpen)}
      >
        <span>{project.value?.name}</span>
        <Icon name="down" size={14} />
      </button>
      {isOpen && <Choices page={page} onClose={close} />}
    </div>
  );
}

function Choices({ page, onClose }: { page: string; onClose: () => void }) {
  const id = useId();
  const { route } = useLocation();
  const input = useRef<HTMLInputElement>(null);
  const [search, setSearch] = useState("");
  const [position, setPosition] = useState(0);
  useLayoutEffect(() => input.current?.focus(), []);
  const wanted = search.trim().toLowerCase();
  const shown = projects.value.filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, shownMax);
  const choose = (chosen: number) => {
    onClose();
    chooseProject(chosen);
    route(to(page));
  };
  return (
    <div
      class="popover"
      role="dialog"
      aria-label={w.project}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown") setPosition(Math.min(position + 1, shown.length - 1));
        else if (event.key === "ArrowUp") setPosition(Math.max(position - 1, 0));
        else if (event.key === "Enter" && event.target === input.current) {
          const chosen = shown[position];
          if (chosen) choose(chosen.id);
        } else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <input
        ref={input}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        aria-label={w.searchProjects}
        placeholder={w.searchProjects}
        aria-expanded={shown.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={shown[position] && `${id}-${position}`}
        value={search}
        onInput={(event) => {
          setSearch(event.currentTarget.value);
          setPosition(0);
        }}
      />
      {shown.length === 0 ? (
        <p class="muted">{w.noProject}</p>
      ) : (
        <ul id={`${id}-list`} role="listbox" aria-label={w.project}>
          {shown.map((one, index) => (
            <li
              key={one.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === position}
              aria-current={one.id === project.value?.id ? "true" : undefined}
              // The field keeps the focus.
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => choose(one.id)}
            >
              {one.name}
            </li>
          ))}
        </ul>
      )}
      {isAdmin.value && (
        <button
          type="button"
          class="new-project"
          onClick={() => {
            onClose();
            route(to("settings", { new: "project" }));
          }}
        >
          {messages.settings.newProject}
        </button>
      )}
    </div>
  );
}
