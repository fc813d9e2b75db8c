/** Talks to Flagkeep's public API as whoever is signed in. */

import { parseJson } from "./json.ts";
import { ownHeader, serverPath, sessionPath } from "./server.ts";

/** What the server refused, in its own words; `status` 0: it could not be reached. */
export class Failure extends Error {
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

  /** The analytics engine is away, or has too much to do; flags and capture go on. */
  get isEngineAway(): boolean {
    return this.status === 503;
  }

  /** It goes by itself: besides, the server is not reached, behind a proxy either, or wants fewer requests. */
  get isPassing(): boolean {
    return [0, 429, 502, 503, 504].includes(this.status);
  }

  /** Nobody is signed in. Other answers with 401 are about a password or a key that was just given. */
  get isSignedOut(): boolean {
    return this.status === 401 && this.code === "not_authenticated";
  }
}

/** Where clients reach the server. */
export const serverAddress = (): string => location.origin + serverPath;

export interface Ask {
  method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  body?: unknown;
  /** A body that is no JSON. */
  file?: Blob;
  /** Fields with files among them. */
  form?: FormData;
  signal?: AbortSignal;
  accept?: string;
}

/** Lets whoever was signed in sign in again; resolves to false when that one did not. Set by the session. */
export const signInAgain: { ask: () => Promise<boolean> } = { ask: async () => false };

/** Asks for the password again; resolves to false when it was not given. Set by the dialog that does so. */
export const confirmPassword: { ask: () => Promise<boolean> } = { ask: async () => false };

/**
 * Sends a request and reads the JSON answer; undefined when there is no body.
 *
 * @throws {Failure} and AbortError.
 */
export async function ask<Answer = unknown>(path: string, options: Ask = {}): Promise<Answer> {
  const response = await send(path, options);
  const text = await response.text();
  return (text === "" ? undefined : parseJson(text)) as Answer;
}

/** Like `ask`, for answers that are no JSON or do not end. */
export async function send(path: string, options: Ask = {}): Promise<Response> {
  const method = options.method ?? "GET";
  if (method !== "GET" && navigator.onLine === false) {
    throw new Failure(0, "offline", "There is no connection. Nothing was changed.");
  }
  let response: Response;
  try {
    response = await fetch(path.startsWith("/") ? serverPath + path : path, {
      method,
      credentials: "same-origin",
      headers: {
        ...ownHeader,
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
    if (options.signal?.aborted) throw error;
    throw new Failure(0, "unreachable", "Flagkeep could not be reached.");
  }
  if (response.ok) return response;
  const failure = await failureOf(response);
  // What was asked is asked again then: nobody has to do it twice, and nothing that was typed is lost.
  if (failure.isSignedOut && path !== sessionPath && (await signInAgain.ask())) return send(path, options);
  if (failure.code === "confirmation_required" && (await confirmPassword.ask())) return send(path, options);
  throw failure;
}

async function failureOf(response: Response): Promise<Failure> {
  const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
  let body: Record<string, unknown> = {};
  try {
    body = (await response.json()) as Record<string, unknown>;
  } catch {
    // A proxy's page, or nothing.
  }
  return new Failure(
    response.status,
    typeof body.code === "string" ? body.code : "error",
    typeof body.detail === "string" && body.detail !== "" ? body.detail : `HTTP ${response.status}`,
    typeof body.attr === "string" ? body.attr : null,
    Number.isFinite(retryAfter) ? retryAfter : undefined,
    body,
  );
}

/** The fields of a form, files too. */
export function formOf(fields: Record<string, string | Blob>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}

/** A query string of what is set; empty texts and undefined are left out. */
export function queryText(values: Record<string, string | number | boolean | undefined | null>): string {
  const set = Object.entries(values).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  if (set.length === 0) return "";
  return `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}`;
}

/** Whether an error only says that nobody waits any more. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** An error as what the server refused. */
export function asFailure(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(-1, "error", wordsOf(error));
}

/** An error in words. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
