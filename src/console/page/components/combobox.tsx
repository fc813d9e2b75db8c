/** A text field with suggestions, if it has any, in groups; any other text is allowed too. */

import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { closest } from "../lib/closest.ts";
import { messages } from "../messages/index.ts";

const w = messages.frame;
const shownMax = 100;

export interface ComboOption {
  value: string;
  group?: string | undefined;
  /** Shown at the end, such as a count. */
  hint?: string | undefined;
}

export function Combobox({
  label,
  isLabelHidden,
  value,
  options,
  placeholder,
  help,
  error,
  isRequired,
  class: more = "",
  start,
  onInput,
  onOpen,
  onChosen,
  onCommit,
  onKeyDown,
}: {
  label: string;
  isLabelHidden?: boolean;
  value: string;
  /** In order; options of a group follow each other. */
  options: readonly ComboOption[];
  placeholder?: string;
  help?: string;
  error?: string | undefined;
  isRequired?: boolean;
  class?: string;
  /** In the same box, before the text. */
  start?: ComponentChildren;
  onInput: (value: string) => void;
  /** Called when the list opens: options may be loaded then. */
  onOpen?: () => void;
  /** Called with a value that was chosen from the list. */
  onChosen?: (value: string) => void;
  /** Called with a complete value: chosen, after Enter, or when the field loses the focus. */
  onCommit?: ((value: string) => void) | undefined;
  /** Called for keys in the text that the list does not use. */
  onKeyDown?: (event: KeyboardEvent) => void;
}) {
  const id = useId();
  // Without options it is a plain text field.
  const hasList = options.length > 0 || onOpen !== undefined;
  const input = useRef<HTMLInputElement>(null);
  const [isOpen, setOpen] = useState(false);
  /** Whether text was typed since the list opened: the present value filters nothing. */
  const [isTyped, setTyped] = useState(false);
  const [position, setPosition] = useState(-1);
  const wanted = (isTyped ? value : "").trim().toLowerCase();
  const matching = options.filter((option) => option.value.toLowerCase().includes(wanted)).slice(0, shownMax);
  const meant =
    wanted !== "" && matching.length === 0
      ? closest(
          wanted,
          options.map((option) => option.value),
        )
      : undefined;
  const shown = meant === undefined ? matching : [{ value: meant, group: w.didYouMean }];
  // A name that was typed in full needs no list, which would cover the fields below.
  const isComplete = isTyped && shown.length === 1 && shown[0]!.value === value;
  const isListed = isOpen && shown.length > 0 && !isComplete;
  const open = () => {
    if (isOpen) return;
    setOpen(true);
    setTyped(false);
    setPosition(-1);
    onOpen?.();
  };
  const close = () => setOpen(false);
  const choose = (chosen: string) => {
    onInput(chosen);
    onChosen?.(chosen);
    onCommit?.(chosen);
    close();
    input.current?.focus();
  };
  const text = (
    <input
      ref={input}
      id={id}
      type="text"
      {...(hasList && {
        role: "combobox",
        "aria-expanded": isListed,
        "aria-controls": `${id}-list`,
        "aria-autocomplete": "list",
        "aria-activedescendant": isListed && position >= 0 ? `${id}-${position}` : undefined,
      })}
      autocomplete="off"
      spellcheck={false}
      placeholder={placeholder}
      required={isRequired}
      aria-invalid={error ? true : undefined}
      aria-describedby={error || help ? `${id}-help` : undefined}
      value={value}
      onClick={open}
      onInput={(event) => {
        open();
        setTyped(true);
        setPosition(-1);
        onInput(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (hasList && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
          const last = shown.length - 1;
          if (!isOpen) open();
          else if (event.key === "ArrowDown") setPosition(Math.min(position + 1, last));
          else setPosition(Math.max(position - 1, 0));
        } else if (event.key === "Enter" && isListed && position >= 0) choose(shown[position]!.value);
        else if (event.key === "Enter" && onCommit) {
          close();
          onCommit(event.currentTarget.value);
        } else if (event.key === "Escape" && isListed) {
          close();
          event.stopPropagation();
        } else return onKeyDown?.(event);
        event.preventDefault();
      }}
    />
  );
  return (
    <div
      class={`field combobox ${more}`}
      onFocusOut={(event) => {
        if (event.currentTarget.contains(event.relatedTarget as Node | null)) return;
        close();
        // A field that is removed with its focus is not left.
        if (input.current) onCommit?.(input.current.value);
      }}
    >
      <label for={id} class={isLabelHidden ? "unseen" : undefined}>
        {label}
      </label>
      {start === undefined ? (
        text
      ) : (
        <div class={error ? "tokens wrong" : "tokens"}>
          {start}
          {text}
        </div>
      )}
      {isListed && (
        <ul id={`${id}-list`} role="listbox" aria-label={label}>
          {shown.map((option, index) => (
            <li
              key={`${option.group} ${option.value}`}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === position}
              ref={(element) => {
                if (index === position) element?.scrollIntoView({ block: "nearest" });
              }}
              // The field keeps the focus.
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => choose(option.value)}
            >
              {option.group !== undefined && option.group !== shown[index - 1]?.group && (
                <span class="combo-group">{option.group}</span>
              )}
              <span class="combo-option">
                <span>{option.value}</span>
                {option.hint && <span class="hint">{option.hint}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
      {(error || help) && (
        <span id={`${id}-help`} class={error ? "error" : "help"}>
          {error ?? help}
        </span>
      )}
    </div>
  );
}
