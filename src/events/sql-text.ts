/** Text inside SQL where DuckDB takes no parameters. */

/** A string literal. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
