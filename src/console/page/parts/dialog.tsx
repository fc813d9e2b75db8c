/** Dialogs: the browser's own, which keep the focus inside and give it back. */

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the end. */
  actions?: ComponentChildren;
  /** Is waited for: a second Enter does not send it twice. */
  onSubmit?: () => unknown;
  /** "alone": nothing of the page is seen behind it. */
  size?: "small" | "large" | "alone";
}

/** Sends a form once, however often that is asked for before the answer is there. */
export function useOnce(send: () => unknown): (event: Event) => Promise<void> {
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

/** Shown as long as it is rendered. */
export function Dialog({ title, onClose, children, actions, onSubmit, size = "small" }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const send = useOnce(() => onSubmit?.());
  // At once: what is typed next is meant for the dialog.
  useLayoutEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    element?.showModal();
    // The field that is meant, not the button that closes; the attribute alone counts in static pages only.
    element?.querySelector<HTMLElement>("[autofocus], form input, .dialog-actions .main")?.focus();
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
        <Button kind="quiet" icon="close" label={words.frame.close} onClick={onClose} />
      </header>
      {onSubmit ? <form onSubmit={send}>{body}</form> : body}
    </dialog>
  );
}
