/** Native dialogs, which trap the focus and restore it. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Button } from "./primitives.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the bottom. */
  actions?: ComponentChildren;
  /** Awaited: a second Enter does not submit twice. */
  onSubmit?: () => unknown;
  /** "alone": hides the page behind it completely. */
  size?: "small" | "large" | "alone";
}

/** Submits a form once, however often it is submitted before the response arrives. */
function useOnce(send: () => unknown): (event: Event) => Promise<void> {
  const isBusy = useRef(false);
  return async (event) => {
    event.preventDefault();
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      await send();
    } finally {
      isBusy.current = false;
    }
  };
}

/** Open while rendered. */
export function Dialog({ title, onClose, children, actions, onSubmit, size = "small" }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const send = useOnce(() => onSubmit?.());
  // A layout effect: the next keystroke must reach the dialog.
  useLayoutEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    element?.showModal();
    // Focus the first field or action, not the close button; `autofocus` alone only works in static pages.
    const find = (selector: string) => element?.querySelector<HTMLElement>(selector);
    (find("[autofocus], form input, .dialog-actions .main") ?? find(".dialog-actions button"))?.focus();
    return () => {
      element?.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  const body = (
    <>
      <div class="dialog-body">{children}</div>
      {actions && <div class="dialog-actions">{actions}</div>}
    </>
  );
  return (
    <dialog
      ref={dialog}
      class={size}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" icon="close" label={messages.frame.close} onClick={onClose} />
      </header>
      {onSubmit ? <form onSubmit={send}>{body}</form> : body}
    </dialog>
  );
}
