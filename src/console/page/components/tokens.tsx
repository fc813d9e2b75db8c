/** An input for a list of short strings, each removable. */

import { useState } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Combobox } from "./combobox.tsx";
import { keepFocusNear } from "./focus.ts";
import { Icon } from "./icons.tsx";

const w = messages.flag.condition;

export function TokenField({
  label,
  values,
  onChange,
  suggestions = [],
  addLabel = w.addValue,
  error,
  isLabelHidden = true,
}: {
  label: string;
  values: readonly string[];
  onChange: (values: string[]) => void;
  suggestions?: readonly string[];
  addLabel?: string;
  error?: string | undefined;
  isLabelHidden?: boolean;
}) {
  const [text, setText] = useState("");
  const add = (sent: string) => {
    const added = sent.trim();
    setText("");
    if (added !== "" && !values.includes(added)) onChange([...values, added]);
  };
  const others = suggestions.filter((suggestion) => !values.includes(suggestion));
  return (
    <Combobox
      label={label}
      isLabelHidden={isLabelHidden}
      value={text}
      placeholder={addLabel}
      options={others.map((value) => ({ value }))}
      error={error}
      onInput={setText}
      onCommit={add}
      onKeyDown={(event) => {
        if (event.key === "," && text.trim() !== "") {
          event.preventDefault();
          add(text);
        } else if (event.key === "Backspace" && text === "" && values.length > 0) {
          onChange(values.slice(0, -1));
        }
      }}
      start={values.map((value) => (
        <span key={value} class="token">
          <span>{value}</span>
          <button
            type="button"
            aria-label={w.removeValue(value)}
            onClick={(event) => {
              keepFocusNear(event.currentTarget);
              onChange(values.filter((other) => other !== value));
            }}
          >
            <Icon name="close" size={13} />
          </button>
        </span>
      ))}
    />
  );
}
