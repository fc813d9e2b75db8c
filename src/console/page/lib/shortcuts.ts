/** Single-key shortcuts. Inactive inside fields, and all can be switched off (WCAG 2.1.4). */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { readPreference, savePreference } from "./storage.ts";

export const shortcutsOn = signal(readPreference("shortcuts") !== "off");

/** Switches all single-key shortcuts on or off in this browser. */
export function setShortcuts(on: boolean): void {
  shortcutsOn.value = on;
  savePreference("shortcuts", on ? null : "off");
}

/** Whether the command key is ⌘. */
export const isApple = /Mac|iPhone|iPad/.test(navigator.platform);

type Handler = (event: KeyboardEvent) => void;
const handlers: Map<string, Handler>[] = [];
let pending = "";
let pendingTimer: ReturnType<typeof setTimeout> | undefined;
const sequenceMs = 1_200;

function isField(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return element?.closest?.("input, textarea, select, [contenteditable], .editor, dialog") != null;
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!shortcutsOn.value) return;
  const target = event.composedPath()[0] ?? event.target;
  if (isField(target) || isField(event.target)) return;
  const name = pending === "" ? event.key : `${pending} ${event.key}`;
  pending = "";
  clearTimeout(pendingTimer);
  const handler = handlers.findLast((map) => map.has(name))?.get(name);
  if (handler) {
    event.preventDefault();
    handler(event);
  } else if (handlers.some((map) => [...map.keys()].some((key) => key.startsWith(`${name} `)))) {
    pending = name;
    pendingTimer = setTimeout(() => {
      pending = "";
    }, sequenceMs);
  }
});

/** Handles keys such as "n" or "g f" while mounted; the most recent handler takes precedence. */
export function useShortcuts(keys: Record<string, Handler>): void {
  useEffect(() => {
    const map = new Map(Object.entries(keys));
    handlers.push(map);
    return () => {
      handlers.splice(handlers.indexOf(map), 1);
    };
  });
}
