/** A button that opens a list of choices, with a search above a long list. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Icon } from "./icons.tsx";

/** More choices than this are searched. */
const searchFrom = 8;
const shownMax = 50;

interface ChoiceListProps<Value> {
  /** Names the list. */
  label: string;
  value: Value | undefined;
  choices: readonly (readonly [Value, string])[];
  searchLabel: string;
  /** Shown if no choice matches the search. */
  nothingFound: string;
  hasSearch?: boolean;
  onChoose: (value: Value) => void;
}

export function ChoicePopover<Value extends string | number>({
  class: className,
  buttonClass,
  face,
  buttonLabel,
  title,
  footer,
  ...list
}: ChoiceListProps<Value> & {
  class: string;
  buttonClass: string;
  face: ComponentChildren;
  /** If the face is no sufficient name. */
  buttonLabel?: string;
  title?: string | undefined;
  /** Below the list. */
  footer?: (close: () => void) => ComponentChildren;
}) {
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
      class={`menu ${className}`}
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
        class={buttonClass}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        aria-label={buttonLabel}
        title={title}
        onClick={() => setOpen(!isOpen)}
      >
        {face}
      </button>
      {isOpen && (
        <div class="popover" role="dialog" aria-label={list.label}>
          <ChoiceList
            {...list}
            onChoose={(value) => {
              close();
              list.onChoose(value);
            }}
          />
          {footer?.(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}

/** A field for one of many stored objects: looks like a select, and its list has a search. */
export function ChoiceField({
  label,
  value,
  choices,
  placeholder,
  onChange,
}: {
  label: string;
  value: string;
  choices: readonly (readonly [string, string])[];
  /** Shown without a value; that of an unknown object is shown as it is. */
  placeholder: string;
  onChange: (value: string) => void;
}) {
  const shown =
    choices.find(([choice]) => choice === value)?.[1] ?? (value === "" ? placeholder : `#${value}`);
  return (
    <ChoicePopover
      class="choice-field"
      buttonClass="choice-name"
      buttonLabel={`${label}: ${shown}`}
      face={
        <>
          <span>{shown}</span>
          <Icon name="down" size={14} />
        </>
      }
      label={label}
      searchLabel={messages.frame.searchIn(label)}
      nothingFound={messages.frame.noChoice}
      value={value}
      choices={choices}
      onChoose={onChange}
    />
  );
}

function ChoiceList<Value extends string | number>({
  label,
  value,
  choices,
  searchLabel,
  nothingFound,
  hasSearch = choices.length > searchFrom,
  onChoose,
}: ChoiceListProps<Value>) {
  const id = useId();
  const focused = useRef<HTMLElement>(null);
  const [search, setSearch] = useState("");
  const [position, setPosition] = useState(() =>
    hasSearch
      ? 0
      : Math.max(
          choices.findIndex(([choice]) => choice === value),
          0,
        ),
  );
  useLayoutEffect(() => focused.current?.focus(), []);
  const wanted = search.trim().toLowerCase();
  const shown = choices.filter(([, text]) => text.toLowerCase().includes(wanted)).slice(0, shownMax);
  const focusProps = {
    "aria-controls": `${id}-list`,
    "aria-activedescendant": shown[position] && `${id}-${position}`,
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "ArrowDown") setPosition(Math.min(position + 1, shown.length - 1));
      else if (event.key === "ArrowUp") setPosition(Math.max(position - 1, 0));
      else if (event.key === "Home" && !hasSearch) setPosition(0);
      else if (event.key === "End" && !hasSearch) setPosition(shown.length - 1);
      else if (event.key === "Enter" || (event.key === " " && !hasSearch)) {
        const chosen = shown[position];
        if (chosen) onChoose(chosen[0]);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    },
  };
  const options = shown.map(([choice, text], index) => (
    <li
      key={choice}
      id={`${id}-${index}`}
      role="option"
      aria-selected={index === position}
      aria-current={choice === value ? "true" : undefined}
      ref={(element) => {
        if (index === position) element?.scrollIntoView({ block: "nearest" });
      }}
      // The focus stays where it is.
      onPointerDown={(event) => event.preventDefault()}
      onClick={() => onChoose(choice)}
    >
      {text}
    </li>
  ));
  return (
    <>
      {hasSearch && (
        <input
          ref={(element) => {
            focused.current = element;
          }}
          type="text"
          role="combobox"
          autocomplete="off"
          spellcheck={false}
          aria-label={searchLabel}
          placeholder={searchLabel}
          aria-expanded={shown.length > 0}
          value={search}
          onInput={(event) => {
            setSearch(event.currentTarget.value);
            setPosition(0);
          }}
          {...focusProps}
        />
      )}
      {shown.length === 0 ? (
        <p class="muted">{nothingFound}</p>
      ) : hasSearch ? (
        <ul id={`${id}-list`} role="listbox" aria-label={label}>
          {options}
        </ul>
      ) : (
        <ul
          id={`${id}-list`}
          role="listbox"
          aria-label={label}
          tabIndex={0}
          ref={(element) => {
            focused.current = element;
          }}
          {...focusProps}
        >
          {options}
        </ul>
      )}
    </>
  );
}
