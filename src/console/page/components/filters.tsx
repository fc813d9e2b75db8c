/** Filters of a list: in a row, or behind one button on a narrow screen. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Button } from "./primitives.tsx";

export function Filters({
  search,
  count,
  found,
  children,
}: {
  /** Always visible. */
  search?: ComponentChildren;
  /** Number of active filters. */
  count: number;
  /** Summary of the matches. */
  found?: ComponentChildren;
  children: ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class={isOpen ? "filters open" : "filters"}>
      {search}
      <span class="narrow-only">
        <Button icon="filter" isPressed={isOpen} onClick={() => setOpen(!isOpen)}>
          {messages.frame.filters(count)}
        </Button>
      </span>
      <div class="more-filters">{children}</div>
      {found}
    </div>
  );
}
