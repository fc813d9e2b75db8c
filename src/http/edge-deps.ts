/** What the HTTP edge needs of the server, and what it reports. Types only. */

import type { Bodies } from "./body.ts";
import type { Dialect } from "./dialect.ts";
import type { ErrorLog } from "./errors.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { Guard, Method, Route } from "./route.ts";

/** What the server knows about a connection. */
export interface Connection {
  /** Address of the other end; undefined where there is none. */
  peer(): string | undefined;
  /** Changes how many seconds may pass without a byte in either direction; 0 for any time. */
  allowSilence(seconds: number): void;
}

/** Where a request comes from and what it was sent to, as the operator's settings tell. */
export interface Places {
  isTrusted(peer: string): boolean;
  clientOf(peer: string | undefined, headers: Headers): string | undefined;
  /** Where clients reach this server, without a slash at the end. */
  baseUrlOf(requested: URL, peer: string | undefined, headers: Headers): string;
}

/** State that the nodes of a cluster share: a request sees all earlier changes, and its own are visible before its response. */
export interface SharedState {
  /** Applies changes of other nodes; where they are unreachable, local state is used. */
  look(): Promise<void>;
  /** Runs a change while no other node changes anything, and resolves when it is visible to all nodes. */
  change<Result>(run: () => Result | Promise<Result>): Promise<Result>;
  /** Resolves when everything that was changed before the call is visible to all nodes. */
  settle(): Promise<void>;
}

export interface EdgeDeps {
  readonly bodies: Bodies;
  readonly places: Places;
  readonly now: () => Date;
  /** Absent: there is one node. */
  readonly shared?: SharedState;
  readonly guard: Guard;
  readonly log: ErrorLog;
  /** Receives every error of a request, whatever the response. */
  readonly onError?: (error: unknown) => void;
  /** Absent: no limits. */
  readonly rateLimiter?: RateLimiter;
  /** Called for every request when its response is complete. */
  readonly onSeen?: (seen: CompletedRequest) => void;
  /** What is known about the connection of a request. */
  readonly connectionOf: (request: Request) => Connection;
}

/** A request that has its response. */
export interface CompletedRequest {
  readonly request: Request;
  readonly requestId: string;
  /** Path of the route record; `other` for unknown paths. */
  readonly route: string;
  /** Whether it carried events. */
  readonly isCapture: boolean;
  readonly status: number;
  /** Why it was rejected, for people. */
  readonly reason: string | undefined;
  /** By the clock of `performance.now`. */
  readonly startedAt: number;
  readonly address: () => string | undefined;
}

/** A path and its methods, which all have one dialect. */
export interface RegisteredPath {
  /** As the route record has it; aliases name it in metrics, too. */
  readonly path: string;
  readonly dialect: Dialect;
  readonly methods: ReadonlyMap<Method, Route>;
}

export type RegisteredPaths = ReadonlyMap<string, RegisteredPath>;
