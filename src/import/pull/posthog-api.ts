/** Reads lists of a PostHog project through its API, page by page, with retries for a busy server. */

import { AppError } from "../../lib/errors.ts";
import { getOwnProperty, isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { parseJsonString } from "../read/json-text.ts";

/** The other server rejects a request or sends an unexpected response. */
export class SourceRejectedError extends AppError {
  readonly code = "source_refused";
  constructor(
    message: string,
    override readonly hint: string,
    /** Of the response. */
    readonly status?: number,
  ) {
    super(message);
  }
}

export interface Page {
  results: JsonObject[];
  /** Path and query of the next page. */
  next: string | undefined;
}

const attemptsMax = 7;
/** Doubled with every attempt. */
const firstPauseMs = 500;
const pauseMsMax = 60_000;
const answerMsMax = 120_000;
const answerBytesMax = 512 * 1024 * 1024;

export class PostHogApi {
  private readonly base: URL;

  /**
   * @param address of the server, with a path when it is not at the root.
   * @param key     a personal key.
   * @param pause   waits for this many milliseconds.
   * @throws {SourceRejectedError} invalid address.
   */
  constructor(
    address: string,
    private readonly key: string,
    private readonly pause: (ms: number) => Promise<void> = Bun.sleep,
  ) {
    const base = URL.parse(address.endsWith("/") ? address : `${address}/`);
    if (base === null)
      throw new SourceRejectedError(`${address} is no address.`, "Give one such as https://eu.posthog.com.");
    this.base = base;
  }

  /** @param path relative to the server's address, or a `next` of a page. @throws {SourceRejectedError} */
  async page(path: string): Promise<Page> {
    const body = await this.get(path);
    const list = isJsonObject(body) ? getOwnProperty(body, "results") : body;
    if (!Array.isArray(list)) throw this.unexpectedResponse(path);
    const next = isJsonObject(body) ? getOwnProperty(body, "next") : undefined;
    return {
      results: list.filter(isJsonObject),
      next: typeof next === "string" ? this.pathOf(next) : undefined,
    };
  }

  /** All results of a short list. @throws {SourceRejectedError} */
  async all(path: string): Promise<JsonObject[]> {
    const found: JsonObject[] = [];
    for (let next: string | undefined = path; next !== undefined; ) {
      const page: Page = await this.page(next);
      found.push(...page.results);
      next = page.next === next ? undefined : page.next;
    }
    return found;
  }

  /** The only project of the key. @throws {SourceRejectedError} the key has several projects, or none. */
  async onlyProject(): Promise<number> {
    const projects = await this.all("api/projects/");
    const [first] = projects;
    if (projects.length === 1 && typeof first!.id === "number") return first!.id;
    const names = projects.map(({ id, name }) => `${id} (${name})`).join(", ");
    throw new SourceRejectedError(
      `The key reaches ${projects.length === 0 ? "no project" : `several projects: ${names}`}.`,
      "Say which one with --source-project.",
    );
  }

  /** The key is only sent to the configured address, whatever host the server reports for itself. */
  private pathOf(next: string): string | undefined {
    const url = URL.parse(next, this.base);
    if (url === null) return undefined;
    const at = url.pathname.indexOf("/api/");
    return at === -1 ? undefined : `${url.pathname.slice(at + 1)}${url.search}`;
  }

  private async get(path: string): Promise<Json> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.attempt(path);
      if (!("busy" in answer)) return answer.body;
      if (attempt === attemptsMax) {
        const message = `${this.base.origin} does not respond (${answer.busy}).`;
        throw new SourceRejectedError(message, "Run the same command with --resume to continue.");
      }
      await this.pause(Math.min(pauseMsMax, answer.afterMs ?? firstPauseMs * 2 ** (attempt - 1)));
    }
  }

  private async attempt(path: string): Promise<{ body: Json } | { busy: string; afterMs?: number }> {
    let status: number;
    let text: string;
    try {
      const response = await fetch(new URL(path, this.base), {
        headers: { Authorization: `Bearer ${this.key}`, Accept: "application/json" },
        // A redirect could send the key to another host.
        redirect: "manual",
        signal: AbortSignal.timeout(answerMsMax),
      });
      status = response.status;
      if (status === 429 || status >= 500) {
        const seconds = Number(response.headers.get("Retry-After"));
        return { busy: `status ${status}`, ...(seconds > 0 ? { afterMs: seconds * 1_000 } : {}) };
      }
      text = await truncateString(response);
    } catch (error) {
      if (error instanceof SourceRejectedError) throw error;
      return { busy: (error as Error).message };
    }
    if (status !== 200) throw this.rejection(path, status, text);
    try {
      return { body: parseJsonString(text) };
    } catch {
      throw this.unexpectedResponse(path);
    }
  }

  private rejection(path: string, status: number, text: string): SourceRejectedError {
    let detail = "";
    try {
      detail = ` (${String((JSON.parse(text) as JsonObject).detail)})`;
    } catch {
      // The response has no error message.
    }
    const hint =
      status === 401 || status === 403
        ? "The key has to be a personal key that may read flags, cohorts, persons, groups and events of the project."
        : "Check the address and --source-project.";
    return new SourceRejectedError(
      `${this.base.origin} answers ${path.split("?")[0]} with ${status}${detail}.`,
      hint,
      status,
    );
  }

  private unexpectedResponse(path: string): SourceRejectedError {
    const message = `${this.base.origin} answers ${path.split("?")[0]} with something that is no list.`;
    return new SourceRejectedError(
      message,
      "Check the address: it is the one of the application, not of the ingestion.",
    );
  }
}

async function truncateString(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > answerBytesMax) throw new SourceRejectedError("A page of the answer is too large.", "");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
