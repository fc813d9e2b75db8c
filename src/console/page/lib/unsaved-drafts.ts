/**
 * Unsaved drafts of editors and forms: they outlive their page and reloads, until they are saved, discarded or the user
 * signs out.
 */

import { signal } from "@preact/signals";

type Drafts = ReadonlyMap<string, unknown>;

const drafts = signal<Drafts>(new Map());
const storageKey = "flagkeep:unsaved";
let owner: string | undefined;

/** One listener for all: a page may be left inside the console while its draft stays. */
const onLeave = (event: BeforeUnloadEvent) => event.preventDefault();

function replace(next: Drafts): void {
  drafts.value = next;
  if (next.size > 0) addEventListener("beforeunload", onLeave);
  else removeEventListener("beforeunload", onLeave);
  try {
    if (next.size === 0) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, JSON.stringify({ user: owner, drafts: [...next] }));
  } catch {
    // Storage may be full or forbidden: then the drafts only outlive their page.
  }
}

function readStored(user: string): Drafts {
  try {
    const stored = JSON.parse(sessionStorage.getItem(storageKey) ?? "{}");
    return new Map(stored.user === user ? stored.drafts : []);
  } catch {
    return new Map();
  }
}

/** Restores the drafts of the user who is signed in now, and drops those of another one. */
export function restoreUnsaved(user: string): void {
  if (owner === user) return;
  owner = user;
  replace(readStored(user));
}

/** A component that reads a draft is rendered again after changes. */
export const readUnsaved = <Draft>(key: string): Draft | undefined =>
  drafts.value.get(key) as Draft | undefined;

/** @param draft survives JSON; never a password or a secret key; undefined: saved or discarded */
export function writeUnsaved(key: string, draft: unknown): void {
  const next = new Map(drafts.peek());
  if (draft !== undefined) next.set(key, draft);
  else if (!next.delete(key)) return;
  replace(next);
}

/** Another user may sign in here. */
export const clearUnsaved = (): void => replace(new Map());
