/**
 * Unsaved drafts of editors and forms: they outlive their page and reloads, until they are saved, discarded or the user
 * signs out.
 */

const drafts = new Map<string, unknown>();
const storageKey = "flagkeep:unsaved";
let owner: string | undefined;

/** One listener for all: a page may be left inside the console while its draft stays. */
const onLeave = (event: BeforeUnloadEvent) => event.preventDefault();

function keep(): void {
  if (drafts.size > 0) addEventListener("beforeunload", onLeave);
  else removeEventListener("beforeunload", onLeave);
  try {
    if (drafts.size === 0) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, JSON.stringify({ user: owner, drafts: [...drafts] }));
  } catch {
    // Storage may be full or forbidden: then the drafts only outlive their page.
  }
}

function readKept(user: string): [string, unknown][] {
  try {
    const kept = JSON.parse(sessionStorage.getItem(storageKey) ?? "{}");
    return kept.user === user ? kept.drafts : [];
  } catch {
    return [];
  }
}

/** Restores the drafts of the user who is signed in now, and drops those of another one. */
export function restoreUnsaved(user: string): void {
  if (owner === user) return;
  owner = user;
  drafts.clear();
  for (const [key, draft] of readKept(user)) drafts.set(key, draft);
  keep();
}

export const readUnsaved = <Draft>(key: string): Draft | undefined => drafts.get(key) as Draft | undefined;

/** @param draft survives JSON; never a password or a secret key; undefined: saved or discarded */
export function writeUnsaved(key: string, draft: unknown): void {
  if (draft === undefined) drafts.delete(key);
  else drafts.set(key, draft);
  keep();
}

/** Another user may sign in here. */
export function clearUnsaved(): void {
  drafts.clear();
  keep();
}
