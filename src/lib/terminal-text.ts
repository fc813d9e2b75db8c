/**
 * Escapes text from clients for terminals and log lines, so that it can neither control the terminal nor forge lines.
 */

/** Replaces every control character except tab and line feed with a visible symbol. */
export function harmless(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

/** Like `harmless`, but on a single line. */
export function inOneLine(text: string): string {
  return harmless(text).replace(/[\t\n\u2028\u2029]/g, "\ufffd");
}
