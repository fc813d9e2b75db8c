/** Payloads as text. */

/** Payloads are stored as JSON text; others may have been written as JSON itself. */
export function payloadText(payload: unknown): string {
  if (payload === undefined) return "";
  return typeof payload === "string" ? payload : JSON.stringify(payload, null, 2);
}
