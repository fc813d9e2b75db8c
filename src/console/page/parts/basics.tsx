/** Small things that all pages are made of. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ago, elsewhere } from "../lib/format.ts";
import { words } from "../words/index.ts";
import { Icon, type IconName } from "./icons.tsx";

const w = words.frame;

interface ButtonProps {
  children?: ComponentChildren;
  icon?: IconName;
  /** What it is called when only the icon is seen. */
  label?: string;
  kind?: "main" | "plain" | "quiet" | "danger";
  type?: "button" | "submit";
  onClick?: (event: MouseEvent) => void;
  isDisabled?: boolean;
  /** Why it cannot be used: it is shown all the same, switched off. */
  refusal?: string | false | undefined;
  isPressed?: boolean;
  href?: string;
}

/** A button, or a link that looks like one. What is not allowed is shown, switched off, with the reason. */
export function Button(props: ButtonProps) {
  const { children, icon, label, kind = "plain", type = "button", onClick, isDisabled, refusal } = props;
  const content = (
    <>
      {icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </>
  );
  const name = `button ${kind}${children === undefined ? " only-icon" : ""}`;
  if (props.href !== undefined && !refusal) {
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
      title={refusal || label}
      aria-disabled={refusal ? true : undefined}
      aria-pressed={props.isPressed}
      disabled={isDisabled}
      onClick={(event) => {
        if (refusal) return event.preventDefault();
        keepFocusNear(event.currentTarget);
        onClick?.(event);
      }}
    >
      {content}
      {refusal && <span class="unseen"> ({refusal})</span>}
    </button>
  );
}

/** For a button that goes away with what it takes away: whoever uses keys goes on from what stands around it. */
export function keepFocusNear(button: HTMLElement): void {
  const around: HTMLElement[] = [];
  for (let one = button.parentElement; one; one = one.parentElement) around.push(one);
  requestAnimationFrame(() => {
    if (button.isConnected || document.activeElement !== document.body) return;
    const near = around.find((one) => one.isConnected);
    // Another page has its own beginning.
    if (!near?.closest("section, fieldset, form")) return;
    [...near.querySelectorAll<HTMLElement>("button, input, select")].at(-1)?.focus();
  });
}

/** On or off at once. Its name is what is switched, its state says whether it is on. */
export function Switch({
  name,
  isOn,
  onChange,
  refusal,
}: {
  name: string;
  isOn: boolean;
  onChange: (on: boolean) => void;
  refusal?: string | false | undefined;
}) {
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-label={name}
      aria-checked={isOn}
      aria-disabled={refusal ? true : undefined}
      title={refusal || undefined}
      onClick={(event) => {
        event.stopPropagation();
        if (!refusal) onChange(!isOn);
      }}
    >
      <span class="knob" />
    </button>
  );
}

/** A moment as a distance from now; the exact one on hover. */
export function When({ at, fallback = "–" }: { at: string | number | null | undefined; fallback?: string }) {
  if (at === null || at === undefined) return <>{fallback}</>;
  const moment = new Date(at);
  return (
    <time dateTime={moment.toISOString()} title={elsewhere(moment)}>
      {ago(moment)}
    </time>
  );
}

/** Copies a text. */
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

/** The clipboard is closed to pages without https except on localhost: then by way of a selection. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** Code that can be copied. */
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

/** Tabs whose choice stands in the address. */
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
    const place = tabs.findIndex(([name]) => name === current);
    const next = (place + step + tabs.length) % tabs.length;
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
            if (event.key === "ArrowRight") move(1);
            else if (event.key === "ArrowLeft") move(-1);
          }}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/** A short word with a colour; the word alone says it all. */
export function Badge({
  children,
  tone = "plain",
}: {
  children: ComponentChildren;
  tone?: "plain" | "good" | "warn" | "bad" | "accent";
}) {
  return <span class={`badge ${tone}`}>{children}</span>;
}
