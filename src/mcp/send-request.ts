/**
 * Sends a request to the management API with the caller's key.
 *
 * @param path   starts with `/api/`.
 * @param signal aborted when the caller cancels.
 */
export type SendRequest = (
  method: "GET" | "POST" | "PATCH",
  path: string,
  body?: object,
  signal?: AbortSignal,
) => Promise<Response>;
