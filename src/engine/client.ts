/** The server process's client for engine queries; commands use it as well. */

import { QueryRejectedError } from "../events/event-filters.ts";
import { clientSignal } from "../lib/cancellation.ts";
import { AppError } from "../lib/errors.ts";
import { RpcError, type RpcStream, RpcUnreachableError, rpcCall, rpcStream } from "../rpc/client.ts";
import { engineSocketName } from "./messages.ts";
import type { Queries } from "./query-types.ts";
import { type CancelReason, QueryMemoryExceededError, QueryTimeoutError } from "./running-queries.ts";

/** The engine is starting; capture and flags keep working meanwhile. */
export class EngineUnavailableError extends AppError {
  readonly code = "engine_unavailable";
  override readonly hint = "Try again in a few seconds.";
  constructor() {
    super("Queries are unavailable while the event store is being reopened.");
  }
}

/** The event store's server does not respond; capture and flags keep working meanwhile. */
class EventStoreUnavailableError extends AppError {
  readonly code = "events_unreachable";
  override readonly hint = "Try again in a few seconds; see `flagkeep status`.";
}

/** What the server process knows about its engine. */
export interface EngineState {
  /** Resolves when the engine is ready, or with false on timeout. */
  waitUntilReady(ms: number): Promise<boolean>;
  /**
   * Why the engine was just replaced, if a user's query was the reason.
   * @param requestedAt by `performance.now()`; a query sent after the replacement cannot be its reason
   */
  getStuckReason(requestedAt: number): CancelReason | undefined;
  /** The event store's limit, for error messages. */
  readonly memoryLimitBytes?: number;
  /** Resolves when an engine that is exiting has exited, or on timeout. */
  waitUntilEnded(ms: number): Promise<void>;
  /** @throws {StatementBlockedError} */
  assertStatementsAllowed(projectId: number): void;
}

/** Retry interval while the engine does not respond. */
const retryMs = 100;
/** How long a query waits for an engine that is starting. */
const startWaitMs = 10_000;
/** How long to wait for the reason why the engine does not respond. */
const endWaitMs = 5_000;
/** Maximum retries of a query if the engine was replaced because of another query. */
const retriesMax = 2;

/** Queries that change data: not retried, because the first attempt may have succeeded. */
const changes: readonly (keyof Queries)[] = [
  "addCohortMembers",
  "addHashKeyOverrides",
  "fillCohortByExposure",
  "fillCohortByFlag",
  "deleteExpiredEvents",
  "holdCheckpoints",
];

/** Error codes of queries that failed for lack of time, memory or an engine, not for their contents. */
export const rejections = [
  "engine_unavailable",
  "events_unreachable",
  "query_busy",
  "query_timeout",
  "query_memory",
  "statements_barred",
];

/** Whether a user wrote the statement. */
const isStatement = (name: keyof Queries): name is "query" | "download" =>
  name === "query" || name === "download";

/**
 * Sends queries to the engine's socket, by the names in `query-types.ts`. `EngineUnavailableError` means that the
 * engine is starting or being replaced.
 */
export class EngineClient {
  /** @param state omitted by commands, which retry on their own */
  constructor(
    private readonly state?: EngineState,
    /** Receives the code of every query that failed with one of `refusals`. */
    private readonly onRejected: (code: string) => void = () => undefined,
    /** Wraps each query. */
    private readonly around: <Answer>(name: string, ask: () => Promise<Answer>) => Promise<Answer> = (
      _,
      ask,
    ) => ask(),
  ) {}

  /**
   * Sends a query.
   * @throws {EngineUnavailableError} the engine does not respond
   * @throws {QueryTimeoutError} @throws {QueryRejectedError} @throws {StatementBlockedError}
   */
  async ask<Name extends keyof Queries>(
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<Queries[Name]["answer"]> {
    return (await this.send(rpcCall, name, request)) as Queries[Name]["answer"];
  }

  /**
   * Like `ask`, for commands: retries for `ms` while the engine does not respond.
   * @throws {EngineUnavailableError} it has not responded by then
   */
  async requestWithRetry<Name extends keyof Queries>(
    name: Name,
    request: Queries[Name]["request"],
    ms: number,
  ): Promise<Queries[Name]["answer"]> {
    for (const end = performance.now() + ms; ; ) {
      try {
        return await this.ask(name, request);
      } catch (error) {
        if (!(error instanceof EngineUnavailableError) || performance.now() > end) throw error;
        await Bun.sleep(retryMs);
      }
    }
  }

  /** Like `ask`, for large responses: streams JSON or a file without parsing. */
  async stream<Name extends "events" | "query" | "download" | "surveyResponses">(
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<{ body: RpcStream["body"]; meta: Queries[Name]["meta"] }> {
    const { body, meta } = await this.send(rpcStream, name, request);
    return { body, meta: meta as Queries[Name]["meta"] };
  }

  /**
   * Whether to retry after the engine was replaced because of another caller's query. Statements are retried only if
   * that caller had disconnected; otherwise the statement itself may be the reason.
   */
  private shouldRetry(name: keyof Queries, reason: CancelReason | undefined): boolean {
    if (reason === undefined || changes.includes(name) || clientSignal()?.aborted) return false;
    return reason === "gone" || !isStatement(name);
  }

  private getUnreachableReason(name: keyof Queries, reason: CancelReason | undefined): AppError {
    if (!isStatement(name)) return new EngineUnavailableError();
    if (reason === "memory")
      return new QueryRejectedError(
        "query_memory",
        new QueryMemoryExceededError(this.state?.memoryLimitBytes).message,
      );
    return reason === "time" ? new QueryTimeoutError() : new EngineUnavailableError();
  }

  private async send<Name extends keyof Queries, Answer>(
    send: (socket: string, name: string, request: unknown, signal?: AbortSignal) => Promise<Answer>,
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<Answer> {
    try {
      return await this.around(name, () => this.trySend(send, name, request));
    } catch (error) {
      if (error instanceof AppError && rejections.includes(error.code)) this.onRejected(error.code);
      throw error;
    }
  }

  private async trySend<Name extends keyof Queries, Answer>(
    send: (socket: string, name: string, request: unknown, signal?: AbortSignal) => Promise<Answer>,
    name: Name,
    request: Queries[Name]["request"],
    retries = retriesMax,
  ): Promise<Answer> {
    if (isStatement(name))
      this.state?.assertStatementsAllowed((request as Queries[typeof name]["request"]).projectId);
    if (this.state !== undefined && !(await this.state.waitUntilReady(startWaitMs)))
      throw new EngineUnavailableError();
    const requestedAt = performance.now();
    try {
      return await send(engineSocketName, name, request, clientSignal());
    } catch (error) {
      if (error instanceof RpcUnreachableError) {
        await this.state?.waitUntilEnded(endWaitMs);
        const reason = this.state?.getStuckReason(requestedAt);
        if (retries === 0 || !this.shouldRetry(name, reason)) throw this.getUnreachableReason(name, reason);
        return await this.trySend(send, name, request, retries - 1);
      }
      if (!(error instanceof RpcError)) throw error;
      if (error.code === "query_timeout") throw new QueryTimeoutError();
      if (error.code === "events_unreachable") throw new EventStoreUnavailableError(error.message);
      // The engine is another version than this command; its hint says so.
      if (error.code === "not_known") throw error;
      if (error.code === "unexpected") throw new Error(`The engine failed: ${error.message}`);
      throw new QueryRejectedError(error.code, error.message);
    }
  }
}
