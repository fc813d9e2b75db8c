/** One filter of a list: its name and value in a pill that opens the choices, with a button that removes it. */

import { messages } from "../messages/index.ts";
import { ChoicePopover } from "./choice-popover.tsx";
import { Icon } from "./icons.tsx";
import { Button } from "./primitives.tsx";

const w = messages.frame;

export function FilterChip<Value extends string>({
  label,
  value,
  choices,
  onChange,
}: {
  label: string;
  /** Empty: not filtered. */
  value: Value | "";
  choices: readonly (readonly [Value | "", string])[];
  onChange: (value: Value | undefined) => void;
}) {
  const shown = choices.find(([choice]) => choice === value)?.[1] ?? value;
  return (
    <span class={value === "" ? "filter-chip" : "filter-chip set"}>
      <ChoicePopover<Value | "">
        class="chip-choice"
        buttonClass="chip-name"
        face={
          <>
            <span>
              {label}
              {value !== "" && ": "}
            </span>
            {value !== "" && <b>{shown}</b>}
            <Icon name="down" size={14} />
          </>
        }
        label={label}
        searchLabel={w.searchIn(label)}
        nothingFound={w.noChoice}
        value={value}
        choices={choices}
        onChoose={(chosen) => onChange(chosen === "" ? undefined : chosen)}
      />
      {value !== "" && (
        <Button kind="quiet" icon="close" label={w.removeFilter(shown)} onClick={() => onChange(undefined)} />
      )}
    </span>
  );
}
