/** Text inside SQL where DuckDB takes no parameters. */

/** A string literal. A NUL, which would end the statement there, becomes U+FFFD as it does in stored text. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''").replaceAll("\0", "\ufffd")}'`;
}
