/** The front's side of queries to the engine; commands use it, too. */

import { QueryRefused } from "../events/port.ts";
import { callerSignal } from "../lib/caller.ts";
import { AppError } from "../lib/errors.ts";
import { RpcFailed, type RpcStream, RpcUnreachable, rpcAsk, rpcStream } from "../rpc/client.ts";
import { engineSocketName } from "./messages.ts";
import type { Queries } from "./query-types.ts";
import { QueryTimedOut, QueryTookMemory, type StopReason } from "./running-queries.ts";

/** The engine is starting again; captures and flags go on meanwhile. */
export class EngineUnavailable extends AppError {
  readonly code = "engine_unavailable";
  override readonly hint = "Try again in a few seconds.";
  constructor() {
    super("Queries cannot be answered at this moment; the event store is being opened again.");
  }
}

/** The server that keeps the events does not answer; captures and flags go on meanwhile. */
class EventsAway extends AppError {
  readonly code = "events_unreachable";
  override readonly hint = "Try again in a few seconds; `flagkeep status` tells more.";
}

/** What the front knows about its engine. */
export interface EngineState {
  /** Resolves when the engine can be asked, or with false when it will not be soon. */
  waitUntilReady(ms: number): Promise<boolean>;
  /**
   * Why the engine was replaced just now, when somebody's query was the reason.
   *
   * @param askedAt by `performance.now()`; what was asked later than that one cannot be the reason.
   */
  whyStuck(askedAt: number): StopReason | undefined;
  /** Resolves when an engine that is ending has ended, or after so long. */
  waitUntilEnded(ms: number): Promise<void>;
  /** @throws {StatementsBarred} */
  requireStatements(projectId: number): void;
}

/** How often an engine that does not answer is asked again. */
const askAgainMs = 100;
/** How long a question waits for an engine that is starting. */
const startWaitMs = 10_000;
/** How long the reason is waited for why the engine does not answer. */
const endWaitMs = 1_000;
/** How often a question is asked again because the engine was replaced for a reason that is not the question. */
const asksAgainMax = 2;

/** Questions that change something: they are not asked again, because the first time may have been enough. */
const changes: readonly (keyof Queries)[] = [
  "addCohortMembers",
  "addHashKeyOverrides",
  "fillCohortByFlag",
  "removeOldEvents",
  "holdCheckpoints",
];

/** Codes of questions that were not answered for want of time, memory or an engine, not for what they ask. */
export const refusals = [
  "engine_unavailable",
  "events_unreachable",
  "query_busy",
  "query_timeout",
  "query_memory",
  "statements_barred",
];

/** Whether somebody else wrote what the engine is to do. */
const isStatement = (name: keyof Queries): name is "query" | "download" =>
  name === "query" || name === "download";

/**
 * Asks the engine over its socket, by the names of `query-types.ts`. `EngineUnavailable` says that it does not answer now,
 * because it starts or is replaced.
 */
export class EngineClient {
  /** @param state left out by commands, which have patience of their own. */
  constructor(
    private readonly state?: EngineState,
    /** Told the code of every refusal: the engine is away, busy, or the question took too much. */
    private readonly onRefused: (code: string) => void = () => undefined,
    /** Does each question, with whatever is to be done around it. */
    private readonly around: <Answer>(name: string, ask: () => Promise<Answer>) => Promise<Answer> = (
      _,
      ask,
    ) => ask(),
  ) {}

  /**
   * Asks the engine.
   *
   * @throws {EngineUnavailable} it does not answer. @throws {QueryTimedOut} @throws {QueryRefused} @throws {StatementsBarred}
   */
  async ask<Name extends keyof Queries>(
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<Queries[Name]["answer"]> {
    return (await this.send(rpcAsk, name, request)) as Queries[Name]["answer"];
  }

  /**
   * As `ask`, for commands: an engine that does not answer, because it starts or is replaced, is asked again for so long.
   *
   * @throws {EngineUnavailable} it has not answered until then.
   */
  async askPatiently<Name extends keyof Queries>(
    name: Name,
    request: Queries[Name]["request"],
    ms: number,
  ): Promise<Queries[Name]["answer"]> {
    for (const end = performance.now() + ms; ; ) {
      try {
        return await this.ask(name, request);
      } catch (error) {
        if (!(error instanceof EngineUnavailable) || performance.now() > end) throw error;
        await Bun.sleep(askAgainMs);
      }
    }
  }

  /** As `ask`, for answers of many bytes: their JSON, or a file, as a stream, which goes out as it is. */
  async stream<Name extends "events" | "query" | "download">(
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<{ body: RpcStream["body"]; meta: Queries[Name]["meta"] }> {
    const { body, meta } = await this.send(rpcStream, name, request);
    return { body, meta: meta as Queries[Name]["meta"] };
  }

  /**
   * Whether the engine was replaced because of the query of another caller: the question waits for the next engine. A statement
   * does so only if the reason is a caller that has left, because otherwise it may be the reason itself.
   */
  private isToAskAgain(name: keyof Queries, reason: StopReason | undefined): boolean {
    if (reason === undefined || changes.includes(name) || callerSignal()?.aborted) return false;
    return reason === "gone" || !isStatement(name);
  }

  private whyUnreachable(name: keyof Queries, reason: StopReason | undefined): AppError {
    if (!isStatement(name)) return new EngineUnavailable();
    if (reason === "memory") return new QueryRefused("query_memory", new QueryTookMemory().message);
    return reason === "time" ? new QueryTimedOut() : new EngineUnavailable();
  }

  private async send<Name extends keyof Queries, Answer>(
    send: (socket: string, name: string, request: unknown, signal?: AbortSignal) => Promise<Answer>,
    name: Name,
    request: Queries[Name]["request"],
  ): Promise<Answer> {
    try {
      return await this.around(name, () => this.trySend(send, name, request));
    } catch (error) {
      if (error instanceof AppError && refusals.includes(error.code)) this.onRefused(error.code);
      throw error;
    }
  }

  private async trySend<Name extends keyof Queries, Answer>(
    send: (socket: string, name: string, request: unknown, signal?: AbortSignal) => Promise<Answer>,
    name: Name,
    request: Queries[Name]["request"],
    asksAgain = asksAgainMax,
  ): Promise<Answer> {
    if (isStatement(name))
      this.state?.requireStatements((request as Queries[typeof name]["request"]).projectId);
    if (this.state !== undefined && !(await this.state.waitUntilReady(startWaitMs)))
      throw new EngineUnavailable();
    const askedAt = performance.now();
    try {
      return await send(engineSocketName, name, request, callerSignal());
    } catch (error) {
      if (error instanceof RpcUnreachable) {
        await this.state?.waitUntilEnded(endWaitMs);
        const reason = this.state?.whyStuck(askedAt);
        if (asksAgain === 0 || !this.isToAskAgain(name, reason)) throw this.whyUnreachable(name, reason);
        return await this.trySend(send, name, request, asksAgain - 1);
      }
      if (!(error instanceof RpcFailed)) throw error;
      if (error.code === "query_timeout") throw new QueryTimedOut();
      if (error.code === "events_unreachable") throw new EventsAway(error.message);
      // The engine is of another version than this command, and its hint says so.
      if (error.code === "not_known") throw error;
      if (error.code === "unexpected") throw new Error(`The engine could not answer: ${error.message}`);
      throw new QueryRefused(error.code, error.message);
    }
  }
}
