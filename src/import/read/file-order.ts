/** The order in which the files of an import are read. Pure. */

/** Natural order: `part-2` is before `part-10`. */
const byName = new Intl.Collator("en", { numeric: true });
/** Heap's table of all events repeats those of other tables without their columns: the others come first. */
const repeatsOthers = (name: string) => /(?:^|[/\\])all_events[^/\\]*$/i.test(name);

/** The order in which files, and contents of a zip archive, are read. */
export function compareNames(one: string, other: string): number {
  return (
    Number(repeatsOthers(one)) - Number(repeatsOthers(other)) ||
    byName.compare(one, other) ||
    (one < other ? -1 : 1)
  );
}
