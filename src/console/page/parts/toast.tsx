/** Short messages at the edge; one may be taken back for ten seconds. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";

interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad";
  undo: (() => void) | undefined;
}

const shownMs = 10_000;
const toastsMax = 4;
const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Tells that something is done; with `undo` it can be taken back while the message is there. */
export function tell(text: string, undo?: () => void): void {
  show(text, "good", undo);
}

/** Tells that something did not work. */
export function complain(text: string): void {
  show(text, "bad", undefined);
}

function show(text: string, tone: Toast["tone"], undo: (() => void) | undefined): void {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text, tone, undo }].slice(-toastsMax);
  setTimeout(() => dismiss(id), shownMs);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  const holder = useRef<HTMLDivElement>(null);
  const count = toasts.value.length;
  // Above open dialogs, too: whatever was shown last is on top.
  useLayoutEffect(() => {
    holder.current?.hidePopover();
    if (count > 0) holder.current?.showPopover();
  }, [lastId, count]);
  return (
    <div class="toasts" role="status" aria-live="polite" popover="manual" ref={holder}>
      {toasts.value.map(({ id, text, tone, undo }) => (
        <div key={id} class={`toast ${tone}`}>
          <span>{text}</span>
          {undo && (
            <Button
              kind="quiet"
              onClick={() => {
                dismiss(id);
                undo();
              }}
            >
              {words.frame.undo}
            </Button>
          )}
          <Button kind="quiet" icon="close" label={words.frame.close} onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
