/** A button that opens a short list of actions. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Label, action, why it is disabled, if so, and whether it is the chosen one of several. */
export type MenuItem = readonly [
  text: string,
  act: () => void,
  refusal?: string | false | undefined,
  isChosen?: boolean,
];

export function Menu({
  label,
  face,
  items,
}: {
  label: string;
  face: ComponentChildren;
  /** As a function: read whenever the list opens. */
  items: readonly MenuItem[] | (() => readonly MenuItem[]);
}) {
  const [isOpen, setOpen] = useState(false);
  const holder = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const onDown = (event: Event) => {
      if (!holder.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", onDown);
    addEventListener("focusin", onDown);
    return () => {
      removeEventListener("pointerdown", onDown);
      removeEventListener("focusin", onDown);
    };
  }, [isOpen]);
  const step = (by: number) => {
    const all = [...(holder.current?.querySelectorAll<HTMLElement>(".menu-list button") ?? [])];
    const index = all.indexOf(document.activeElement as HTMLElement);
    // From the button, up leads to the last one.
    const next = index < 0 && by < 0 ? -1 : index + by;
    all.at(next % all.length)?.focus();
  };
  return (
    <div
      class="menu"
      ref={holder}
      onKeyDown={(event) => {
        if (!isOpen) return;
        if (event.key === "Escape") {
          setOpen(false);
          button.current?.focus();
        } else if (event.key === "ArrowDown") step(1);
        else if (event.key === "ArrowUp") step(-1);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <button
        ref={button}
        type="button"
        class="button quiet"
        aria-label={label}
        title={label}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {face}
      </button>
      {isOpen && (
        <ul class="menu-list">
          {(typeof items === "function" ? items() : items).map(([text, act, rejection, isChosen]) => (
            <li key={text}>
              <button
                type="button"
                aria-current={isChosen ? "true" : undefined}
                aria-disabled={rejection ? true : undefined}
                title={rejection || undefined}
                onClick={() => {
                  if (rejection) return;
                  setOpen(false);
                  button.current?.focus();
                  act();
                }}
              >
                {text}
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
