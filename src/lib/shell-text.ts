/** Words for a shell, in commands that people copy. */

/** The text as one word of a command; as it is where a shell would not change it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : inSingleQuotes(text);
}

/** In single quotes, whatever is in it. */
export function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
