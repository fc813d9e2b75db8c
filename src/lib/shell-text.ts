/** Quotes shell words in commands that users copy. */

/** The text as one shell word; unquoted if the shell would not change it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : inSingleQuotes(text);
}

/** In single quotes, for any content. */
export function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
