/** Dependencies and reports of the HTTP layer. Types only. */

import type { BodyReader } from "./body.ts";
import type { ErrorLog } from "./error-mapping.ts";
import type { RateLimiter } from "./rate-limit.ts";
import type { Guard, Method, Route } from "./route.ts";
import type { RouteProfile } from "./route-profile.ts";

/** A connection of the server. */
export interface Connection {
  /** Address of the peer, if known. */
  peer(): string | undefined;
  /** Sets the idle timeout of the connection in seconds; 0 for none. */
  allowSilence(seconds: number): void;
}

/** Resolves the client address and base URL of a request by the operator's settings. */
export interface OriginResolver {
  isTrusted(peer: string): boolean;
  getClient(peer: string | undefined, headers: Headers): string | undefined;
  /** URL by which clients reach this server, without a trailing slash. */
  getBaseUrl(requested: URL, peer: string | undefined, headers: Headers): string;
}

/** State that the nodes of a cluster share: a request sees all earlier changes, and its own are visible before its response. */
export interface SharedState {
  /** Applies changes of other nodes; where they are unreachable, local state is used. */
  check(): Promise<void>;
  /**
   * Runs a change while no other node changes anything, and resolves when it is visible to all nodes.
   * @param run receives the time to record: later than that of all earlier changes
   */
  change<Result>(run: (now: Date) => Result | Promise<Result>): Promise<Result>;
  /** Resolves when everything that was changed before the call is visible to all nodes. */
  settle(): Promise<void>;
}

export interface EdgeDeps {
  readonly bodies: BodyReader;
  readonly origins: OriginResolver;
  readonly now: () => Date;
  /** Absent: single node. */
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
  readonly getConnectionInfo: (request: Request) => Connection;
}

/** A request with a complete response. */
export interface CompletedRequest {
  readonly request: Request;
  readonly requestId: string;
  /** Path of the route record; `other` for unknown paths. */
  readonly route: string;
  /** Whether it carried events. */
  readonly isCapture: boolean;
  readonly status: number;
  /** Human-readable reason of a rejection. */
  readonly reason: string | undefined;
  /** By the clock of `performance.now`. */
  readonly startedAt: number;
  readonly address: () => string | undefined;
}

/** A path and its methods, which all have one profile. */
export interface RegisteredPath {
  /** As in the route record; also names its aliases in metrics. */
  readonly path: string;
  readonly profile: RouteProfile;
  readonly methods: ReadonlyMap<Method, Route>;
}

export type RegisteredPaths = ReadonlyMap<string, RegisteredPath>;
