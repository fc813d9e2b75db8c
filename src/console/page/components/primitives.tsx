/** Basic components of all pages. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ago, date, elsewhere } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
import { focusAdded, keepFocusNear } from "./focus.ts";
import { Icon, type IconName } from "./icons.tsx";

const w = messages.frame;

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  /** Accessible name when only the icon is visible. */
  label?: string;
  kind?: "main" | "plain" | "quiet" | "danger";
  type?: "button" | "submit";
  onClick?: (event: MouseEvent) => void;
  isDisabled?: boolean;
  /** Why it is disabled: the button is shown nevertheless. */
  disabledReason?: string | false | undefined;
  isPressed?: boolean;
  href?: string;
}

/** A button, or a link styled as one. Actions that are not allowed are disabled and show the reason. */
export function Button(props: ButtonProps) {
  const {
    children,
    icon,
    label,
    kind = "plain",
    type = "button",
    onClick,
    isDisabled,
    disabledReason,
  } = props;
  const content = (
    <>
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </>
  );
  const name = `button ${kind}${children === undefined ? " only-icon" : ""}`;
  if (props.href !== undefined && !disabledReason) {
    return (
      <a class={name} href={props.href} aria-label={label}>
        {content}
      </a>
    );
  }
  return (
    <button
      class={name}
      type={type}
      aria-label={label}
      title={disabledReason || label}
      aria-disabled={disabledReason ? true : undefined}
      aria-pressed={props.isPressed}
      disabled={isDisabled}
      onClick={(event) => {
        if (disabledReason) return event.preventDefault();
        keepFocusNear(event.currentTarget);
        onClick?.(event);
      }}
    >
      {content}
      {disabledReason && <span class="unseen"> ({disabledReason})</span>}
    </button>
  );
}

/** Below a list, to which it adds an item: the focus moves into the item. */
export function AddButton({
  onAdd,
  focused,
  ...props
}: Pick<ButtonProps, "children" | "kind" | "isDisabled"> & {
  onAdd: () => void;
  /** Selector of what gets the focus in the element above; default: its first field. */
  focused?: string;
}) {
  return (
    <Button
      kind="quiet"
      icon="plus"
      {...props}
      onClick={(event) => {
        focusAdded(event, focused);
        onAdd();
      }}
    />
  );
}

/** Takes effect immediately. Its label names what is switched; its state is on or off. */
export function Switch({
  name,
  isOn,
  onChange,
  disabledReason: rejection,
}: {
  name: string;
  isOn: boolean;
  onChange: (on: boolean) => void;
  disabledReason?: string | false | undefined;
}) {
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-label={name}
      aria-checked={isOn}
      aria-disabled={rejection ? true : undefined}
      title={rejection || undefined}
      onClick={(event) => {
        event.stopPropagation();
        if (!rejection) onChange(!isOn);
      }}
    >
      <span class="knob" />
    </button>
  );
}

/** Relative time; the exact time on hover. */
export function RelativeTime({
  at,
  fallback = "–",
}: {
  at: string | number | null | undefined;
  fallback?: string;
}) {
  if (at === null || at === undefined) return <>{fallback}</>;
  const moment = new Date(at);
  return (
    <time dateTime={moment.toISOString()} title={elsewhere(moment)}>
      {ago(moment)}
    </time>
  );
}

/** A date; the time on hover. */
export function Day({ at }: { at: string | number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={elsewhere(at)}>
      {date(at)}
    </time>
  );
}

export function CopyButton({ text, label = w.copy }: { text: string | (() => string); label?: string }) {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return;
    const timer = setTimeout(() => setDone(false), 2_000);
    return () => clearTimeout(timer);
  }, [isDone]);
  return (
    <Button
      kind="quiet"
      icon={isDone ? "check" : "copy"}
      onClick={() => {
        void copyText(typeof text === "string" ? text : text()).then(() => setDone(true));
      }}
    >
      {isDone ? w.copied : label}
    </Button>
  );
}

/** Without HTTPS, except on localhost, pages have no clipboard access: falls back to a selection. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <div class="code-block">
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} />
    </div>
  );
}

/** Tabs whose selection is in the URL. */
export function Tabs<Name extends string>({
  label,
  tabs,
  current,
  onChoose,
}: {
  label: string;
  tabs: readonly (readonly [Name, string])[];
  current: Name;
  onChoose: (name: Name) => void;
}) {
  const list = useRef<HTMLDivElement>(null);
  // On a narrow screen the tabs scroll sideways.
  useEffect(() => {
    const chosen = list.current?.querySelector<HTMLElement>("[aria-selected=true]");
    if (chosen) list.current!.scrollLeft = chosen.offsetLeft - list.current!.offsetLeft - 40;
  }, [current]);
  const move = (step: number) => {
    const position = tabs.findIndex(([name]) => name === current);
    const next = (position + step + tabs.length) % tabs.length;
    onChoose(tabs[next]![0]);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list}>
      {tabs.map(([name, text]) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={name === current}
          tabIndex={name === current ? 0 : -1}
          onClick={() => onChoose(name)}
          onKeyDown={(event) => {
            // In a list at the side they are one below the other.
            if (event.key === "ArrowRight" || event.key === "ArrowDown") move(1);
            else if (event.key === "ArrowLeft" || event.key === "ArrowUp") move(-1);
            else return;
            event.preventDefault();
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/** A short colored label; the text alone carries the meaning. */
export function Badge({
  children,
  tone = "plain",
  title,
}: {
  children: ComponentChildren;
  /** A definition on hover. */
  title?: string;
  tone?: "plain" | "good" | "warn" | "bad" | "accent";
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}
