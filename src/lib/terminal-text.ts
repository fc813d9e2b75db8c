/**
 * Escapes text from clients for terminals and log lines, so that it can neither control the terminal nor forge lines,
 * and quotes shell words in commands that users copy.
 */

/** Replaces every control character except tab and line feed with a visible symbol. */
export function harmless(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

/** Like `harmless`, but on a single line. */
export function inOneLine(text: string): string {
  return harmless(text).replace(/[\t\n\u2028\u2029]/g, "\ufffd");
}

/** The text as one shell word; unquoted if the shell would not change it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : inSingleQuotes(text);
}

/** In single quotes, for any content. */
export function inSingleQuotes(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
