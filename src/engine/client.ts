/** The front's side of queries to the engine. */

import { AppError } from "../errors.ts";
import { engineSocketName } from "./messages.ts";
import { nextPositionHeader, type Queries, refusedStatus } from "./query-types.ts";

/** The engine is starting again; captures and flags go on meanwhile. */
export class EngineUnavailable extends AppError {
  readonly code = "engine_unavailable";
  override readonly hint = "Try again in a few seconds.";
  constructor() {
    super("Queries can not be answered at this moment; the event store is being opened again.");
  }
}

/** The query was stopped at the limit of the setting `query-timeout`. */
export class QueryTimedOut extends AppError {
  readonly code = "query_timeout";
  override readonly hint = "Ask for less, for example a shorter time range.";
  constructor() {
    super("The query took too long and was stopped.");
  }
}

/** The query asks for something that can not be answered; the message says what. */
export class QueryRefused extends AppError {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class EngineClient {
  /**
   * Asks the engine.
   *
   * @throws {EngineUnavailable} it does not answer. @throws {QueryTimedOut} @throws {QueryRefused}
   */
  async ask<Name extends keyof Queries>(
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<Queries[Name]["answer"]> {
    const response = await this.post(name, request);
    if (response.status === refusedStatus) {
      const { code, message } = (await response.json()) as { code: string; message: string };
      throw new QueryRefused(code, message);
    }
    if (response.status === 504) throw new QueryTimedOut();
    if (!response.ok) throw new Error(`The engine answered ${response.status}: ${await response.text()}`);
    if (name !== "events") return (await response.json()) as Queries[Name]["answer"];
    const next = response.headers.get(nextPositionHeader);
    return {
      text: await response.text(),
      next: next === null ? undefined : JSON.parse(next),
    } as Queries[Name]["answer"];
  }

  private async post(name: string, request: unknown): Promise<Response> {
    try {
      return await fetch(`http://engine/${name}`, {
        unix: engineSocketName,
        method: "POST",
        body: JSON.stringify(request),
        // The engine stops a query that takes too long.
        timeout: false,
      } as RequestInit);
    } catch {
      throw new EngineUnavailable();
    }
  }
}
