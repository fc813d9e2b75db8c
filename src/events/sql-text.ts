/** String literals in SQL, for statements without parameters. */

/** A string literal. NUL, which would end the statement, becomes U+FFFD as in stored strings. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''").replaceAll("\0", "\ufffd")}'`;
}
