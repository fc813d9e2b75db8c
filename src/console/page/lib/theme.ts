/** Light, dark, or what the system says. Everything else is colour variables in `style/variables.css`. */

import { recall, remember } from "./memory.ts";

export const themeNames = ["system", "light", "dark"] as const;
export type Theme = (typeof themeNames)[number];

/** What was chosen in this browser. */
export function storedTheme(): Theme {
  const found = recall("theme");
  return themeNames.find((theme) => theme === found) ?? "system";
}

/** Shows a theme; charts and editors take their colours from the same variables and hear of it by an event. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("themechange"));
}

/** Shows a theme and keeps the choice. */
export function chooseTheme(theme: Theme): void {
  remember("theme", theme);
  applyTheme(theme);
}

/** A colour variable's value, for canvases. */
export function colour(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
