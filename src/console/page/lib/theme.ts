/** Theme: light, dark or the system's. Everything else is color variables in `style/variables.css`. */

import { readPreference, savePreference } from "./storage.ts";

export const themeNames = ["system", "light", "dark"] as const;
export type Theme = (typeof themeNames)[number];

/** The choice stored in this browser. */
export function storedTheme(): Theme {
  const found = readPreference("theme");
  return themeNames.find((theme) => theme === found) ?? "system";
}

/** Applies a theme; charts and editors use the same variables and are notified by an event. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  dispatchEvent(new Event("themechange"));
}

/** Applies a theme and stores the choice. */
export function chooseTheme(theme: Theme): void {
  savePreference("theme", theme);
  applyTheme(theme);
}

/** Value of a color variable, for canvases. */
export function themeColor(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
