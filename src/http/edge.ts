/**
 * The Elysia application: the life cycle that every route shares.
 *
 * `onRequest` creates the request's context, the route's hooks authorize and read the body (`route-handler.ts`), `onError`
 * turns errors into responses, `mapResponse` adds common headers and records the request. `docs/decisions/07-own-http-layer.md` says why.
 */

import { Elysia, NotFoundError } from "elysia";
import { BunAdapter } from "elysia/adapter/bun";
import { isCallerGone } from "../lib/caller.ts";
import { managementDialect } from "./dialect.ts";
import type { CompletedRequest, EdgeDeps, RegisteredPath, RegisteredPaths } from "./edge-deps.ts";
import { failureOf, logDefect } from "./errors.ts";
import { Exchange } from "./exchange.ts";
import { callerGone, notFound } from "./failure.ts";
import { finishResponse } from "./finish-response.ts";
import { registerPaths } from "./paths.ts";

const unknownPath: RegisteredPath = { path: "other", dialect: managementDialect, methods: new Map() };

export type EdgeApp = ReturnType<typeof createLifecycle>;

/**
 * An application that serves these paths; Elysia composes it at its first request.
 *
 * @param isSecure whether its requests come over TLS.
 */
export function createEdge(paths: RegisteredPaths, isSecure: boolean, deps: EdgeDeps): EdgeApp {
  const app = createLifecycle(isSecure, deps);
  registerPaths(app, paths);
  return app;
}

function createLifecycle(isSecure: boolean, deps: EdgeDeps) {
  return new Elysia({
    name: "flagkeep",
    // Elysia's HEAD routes run the GET and read its body to count the bytes, also of an endless stream.
    adapter: { ...BunAdapter, isWebStandard: false },
    normalize: false,
    strictPath: true,
    // With true, Elysia looks for the path after a host of usual length and fails for `http://api/`; with false it looks
    // after `http://`, which in `https://` would find the second slash.
    handler: { standardHostname: isSecure },
  })
    .decorate("exchange", undefined as unknown as Exchange)
    .onRequest((context) => {
      const { request } = context;
      context.exchange = new Exchange(request, deps.connectionOf(request), unknownPath, deps);
    })
    .onError({ as: "global" }, ({ error: thrown, exchange, set }) => {
      // Otherwise Elysia rebuilds the response with its own status.
      set.status = 200;
      const error = thrown instanceof NotFoundError ? notFound() : thrown;
      deps.onError?.(error);
      const { request, requestId, registered } = exchange;
      const failure = isCallerGone(error, request.signal) ? callerGone() : failureOf(error);
      exchange.reason = failure.message;
      if (failure.status === 500) logDefect(error, { request, requestId, log: deps.log });
      return registered.dialect.refuse(failure, error, exchange);
    })
    .mapResponse({ as: "global" }, async ({ exchange, responseValue }) => {
      exchange.end();
      const finished = finishResponse(responseValue, exchange.registered.dialect, exchange);
      const response = finished instanceof Promise ? await finished : finished;
      deps.onSeen?.(completed(exchange, response.status));
      return response;
    });
}

function completed(exchange: Exchange, status: number): CompletedRequest {
  const { request, requestId, registered, reason, startedAt } = exchange;
  return {
    request,
    requestId,
    route: registered.path,
    isCapture: registered.dialect.isCapture ?? false,
    status,
    reason,
    startedAt,
    address: () => exchange.address,
  };
}
