/** Texts that come from clients, where a terminal shows them or a line is a record: nothing in them steers or forges. */

/** Every control character but tab and the end of a line is shown as a mark. */
export function harmless(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
}

/** The same, and it stays one line. */
export function inOneLine(text: string): string {
  return harmless(text).replace(/[\t\n\u2028\u2029]/g, "\ufffd");
}
