/** The order in which the files of an import are read. Pure. */

/** Natural order: `part-2` is before `part-10`. */
const byName = new Intl.Collator("en", { numeric: true });
/**
 * Heap's `all_events` and the `tracks` of Segment and RudderStack repeat the events of other tables without their
 * columns: the others come first. A table is a file, several numbered ones, or a folder.
 */
const repeatsOthers = (name: string) =>
  /(?:^|[/\\])(?:all_events|tracks)(?:[_.-]?\d[^/\\]*)?(?:\.[^/\\]*)?(?:[/\\][^/\\]*)?$/i.test(name);

/** The order in which files, and contents of a zip archive, are read. */
export function compareNames(a: string, b: string): number {
  return Number(repeatsOthers(a)) - Number(repeatsOthers(b)) || byName.compare(a, b) || (a < b ? -1 : 1);
}
