/** Client of Flagkeep's public API for the signed-in user. */

import { signal } from "@preact/signals";
import { parseJson } from "./json.ts";
import { csrfHeader, serverPath, sessionPath } from "./server.ts";
import { notifyTabs } from "./tabs.ts";

/** Code of a response without one. */
const unknownCode = "error";

/** An error response with the server's message; `status` 0: the server is unreachable. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    /** The field at fault, nested parts joined by `__`. */
    readonly attr: string | null = null,
    readonly retryAfterSeconds: number | undefined = undefined,
    readonly body: Record<string, unknown> = {},
  ) {
    super(detail);
  }

  /** The analytics engine is starting or being replaced; flags and capture continue. */
  get isEngineUnavailable(): boolean {
    return this.status === 503 && this.code === "engine_unavailable";
  }

  /** The server itself responded that it cannot do this now, and why; without a code, it was a proxy. */
  get hasReason(): boolean {
    return this.status === 429 || (this.status === 503 && this.code !== unknownCode);
  }

  /** The error is transient: also if the server is unreachable, directly or behind a proxy, or rate limits. */
  get isPassing(): boolean {
    return [0, 429, 502, 503, 504].includes(this.status);
  }

  /** No session. Other 401 responses are about a password or key that was just entered. */
  get isSignedOut(): boolean {
    return this.status === 401 && this.code === "not_authenticated";
  }
}

/** URL at which clients reach the server. */
export const serverAddress = (): string => location.origin + serverPath;

/** A type of the API with members that its schema leaves open, or types more precisely. */
export type Refine<Type, Members> = Omit<Type, keyof Members> & Members;

export interface RequestOptions {
  method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  body?: unknown;
  /** A body that is not JSON. */
  file?: Blob;
  /** Fields that include files. */
  form?: FormData;
  signal?: AbortSignal;
  accept?: string;
  /** A health probe: its failure is already known to health. */
  isProbe?: boolean;
  /** A read that is sent as POST. Those with a signal are reads anyway: changes are not aborted. */
  isRead?: boolean;
}

/** Number of requests that did not reach the server: a change triggers a health check. */
export const contactFailed = signal(0);

/** Lets the user sign in again; resolves to false on failure. Set by the session. */
export const signInAgain: { ask: () => Promise<boolean> } = { ask: async () => false };

/** Asks for the password; resolves to false if cancelled. Set by the dialog. */
export const confirmPassword: { ask: () => Promise<boolean> } = { ask: async () => false };

/**
 * Sends a request and parses the JSON response; undefined without a body.
 *
 * @throws {ApiError} and AbortError.
 */
export async function request<Answer = unknown>(path: string, options: RequestOptions = {}): Promise<Answer> {
  const response = await send(path, options);
  const text = await response.text();
  return (text === "" ? undefined : parseJson(text)) as Answer;
}

/** Like `request`, for responses that are not JSON or do not end. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const method = options.method ?? "GET";
  if (method !== "GET" && navigator.onLine === false) {
    throw new ApiError(0, "offline", "No connection to the server. Nothing was changed.");
  }
  let response: Response;
  try {
    response = await fetch(path.startsWith("/") ? serverPath + path : path, {
      method,
      credentials: "same-origin",
      headers: {
        ...csrfHeader,
        Accept: options.accept ?? "application/json",
        ...(options.body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(options.file === undefined ? {} : { "Content-Type": "application/octet-stream" }),
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      ...(options.file === undefined ? {} : { body: options.file }),
      ...(options.form === undefined ? {} : { body: options.form }),
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
  } catch (error) {
    if (options.signal?.aborted && isAbort(error)) throw error;
    if (!options.isProbe) contactFailed.value += 1;
    throw new ApiError(0, "unreachable", "Flagkeep could not be reached.");
  }
  if (response.ok) {
    if (changesObjects(path, options)) notifyTabs("changed");
    return response;
  }
  const failure = await readApiError(response);
  // Retry after signing in again, so that no action or input is lost.
  if (failure.isSignedOut && path !== sessionPath && (await signInAgain.ask())) return send(path, options);
  if (failure.code === "confirmation_required" && (await confirmPassword.ask())) return send(path, options);
  throw failure;
}

/**
 * Whether other tabs may show what a request changed. Parts of a file change nothing, and sessions have a message of their
 * own.
 */
function changesObjects(path: string, { method = "GET", signal, file, isRead }: RequestOptions): boolean {
  return method !== "GET" && !isRead && !signal && !file && !path.startsWith(sessionPath);
}

async function readApiError(response: Response): Promise<ApiError> {
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  let body: Record<string, unknown> = {};
  try {
    body = (await response.json()) as Record<string, unknown>;
  } catch {
    // A proxy's page, or an empty body.
  }
  return new ApiError(
    response.status,
    typeof body.code === "string" ? body.code : unknownCode,
    typeof body.detail === "string" && body.detail !== "" ? body.detail : `HTTP ${response.status}`,
    typeof body.attr === "string" ? body.attr : null,
    Number.isFinite(retryAfter) ? retryAfter : undefined,
    body,
  );
}

/** Form data, including files. */
export function getForm(fields: Record<string, string | Blob>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}

/** A query string; empty strings and undefined are omitted. */
export function queryString(values: Record<string, string | number | boolean | undefined | null>): string {
  const set = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  if (set.length === 0) return "";
  return `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}`;
}

/** Whether an error only means that the request was aborted. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

export function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(-1, "error", errorMessage(error));
}

export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
