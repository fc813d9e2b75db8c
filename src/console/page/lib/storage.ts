/** Preferences in this browser: theme, project, shortcuts, queries. Works without storage too. */

const storagePrefix = "flagkeep:";

export function readPreference(name: string): string | null {
  try {
    return localStorage.getItem(storagePrefix + name);
  } catch {
    return null;
  }
}

/** Null removes the entry. */
export function savePreference(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(storagePrefix + name);
    else localStorage.setItem(storagePrefix + name, value);
  } catch {
    // Storage may be full or forbidden; the choice then applies to this visit only.
  }
}
