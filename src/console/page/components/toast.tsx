/** Toasts; some offer undo for ten seconds. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { errorMessage } from "../lib/api.ts";
import { messages } from "../messages/index.ts";
import { Button } from "./primitives.tsx";

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

/** Reports success; with `undo` it can be undone while the message is visible. */
export function toast(text: string, undo?: () => void): void {
  show(text, "good", undo);
}

/** @param error anything thrown, or a message */
export function toastError(error: unknown): void {
  show(errorMessage(error), "bad", undefined);
}

function show(text: string, tone: Toast["tone"], undo: (() => void) | undefined): void {
  const id = ++lastId;
  // A repeated message replaces the earlier one; each undo is of its own change.
  const others = toasts.value.filter((toast) => toast.text !== text || toast.undo !== undefined);
  toasts.value = [...others, { id, text, tone, undo }].slice(-toastsMax);
  setTimeout(() => dismiss(id), shownMs);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

export function Toasts() {
  const holder = useRef<HTMLDivElement>(null);
  const count = toasts.value.length;
  // The next user must not undo changes of this one.
  useEffect(
    () => () => {
      toasts.value = toasts.peek().filter(({ undo }) => undo === undefined);
    },
    [],
  );
  // Must cover open dialogs: the top layer shows the most recent element on top.
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
              {messages.frame.undo}
            </Button>
          )}
          <Button kind="quiet" icon="close" label={messages.frame.close} onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
