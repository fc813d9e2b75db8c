/** Choices of this browser: theme, project, shortcuts, queries. A browser that keeps nothing is no trouble. */

const storagePrefix = "flagkeep:";

/** What was remembered under a name. */
export function recall(name: string): string | null {
  try {
    return localStorage.getItem(storagePrefix + name);
  } catch {
    return null;
  }
}

/** Remembers a text; null forgets it. */
export function remember(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(storagePrefix + name);
    else localStorage.setItem(storagePrefix + name, value);
  } catch {
    // Storage can be full or forbidden; the choice then holds for this visit.
  }
}
