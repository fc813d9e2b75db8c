/** Parts of a path. */

/** A part as a positive integer; one that is none is the id of nothing. */
export function readId(params: Record<string, string | undefined>, name: string): number {
  const text = params[name] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : -1;
}
