/** Suggestions for misspelled names. */

/** More edits make a different word. */
const editsMax = 2;

/** The known name with the fewest edits; letter case, `$`, `_` and spaces are ignored. */
export function closest(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[$_\s-]/g, "");
  const wanted = plain(name);
  let best: string | undefined;
  let least = Math.min(editsMax, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const edits = distance(wanted, plain(candidate), least);
    if (edits < least) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

/** Edit distance between two strings, counting a swap of neighbors as one edit; at most `limit`. */
function distance(value: string, other: string, limit: number): number {
  if (Math.abs(value.length - other.length) >= limit) return limit;
  let above: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= value.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1]! + (value[i - 1] === other[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && value[i - 1] === other[j - 2] && value[i - 2] === other[j - 1];
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1, isSwap ? above[j - 2]! + 1 : limit));
    }
    above = row;
    row = next;
  }
  return Math.min(limit, row[other.length]!);
}
