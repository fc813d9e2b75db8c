/** Unsaved drafts of editors: they outlive their page, until they are saved, discarded or the user signs out. */

const drafts = new Map<string, unknown>();

/** One listener for all: a page may be left inside the console while its draft stays. */
const onLeave = (event: BeforeUnloadEvent) => event.preventDefault();

function warnOnLeave(): void {
  if (drafts.size > 0) addEventListener("beforeunload", onLeave);
  else removeEventListener("beforeunload", onLeave);
}

export const readUnsaved = <Draft>(key: string): Draft | undefined => drafts.get(key) as Draft | undefined;

/** @param draft undefined: saved or discarded */
export function writeUnsaved(key: string, draft: unknown): void {
  if (draft === undefined) drafts.delete(key);
  else drafts.set(key, draft);
  warnOnLeave();
}

/** Another user may sign in here. */
export function clearUnsaved(): void {
  drafts.clear();
  warnOnLeave();
}
