/** Details at the side of a page, which stays visible and usable; a dialog where both do not fit. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { messages } from "../messages/index.ts";
import { Dialog } from "./dialog.tsx";
import { Button } from "./primitives.tsx";

/** The style sheet has the same width. */
const sidePanelScreen = "(min-width: 1100px)";

interface PanelProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** Buttons at the bottom. */
  actions?: ComponentChildren;
}

export function SidePanel(props: PanelProps) {
  return matchMedia(sidePanelScreen).matches ? (
    <DockedPanel {...props} />
  ) : (
    <Dialog size="large" {...props} />
  );
}

function DockedPanel({ title, onClose, children, actions }: PanelProps) {
  const id = useId();
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    panel.current?.focus();
    return () => {
      if (before?.isConnected) before.focus();
    };
  }, []);
  return (
    <section
      ref={panel}
      class="side-panel"
      role="dialog"
      aria-labelledby={id}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" icon="close" label={messages.frame.close} onClick={onClose} />
      </header>
      <div class="dialog-body">{children}</div>
      {actions && <div class="dialog-actions">{actions}</div>}
    </section>
  );
}
