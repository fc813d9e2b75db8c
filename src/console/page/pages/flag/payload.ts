/** Payloads as text. */

/** Payloads are stored as JSON strings; some clients write JSON itself. */
export function payloadJson(payload: unknown): string {
  if (payload === undefined) return "";
  return typeof payload === "string" ? payload : JSON.stringify(payload, null, 2);
}
