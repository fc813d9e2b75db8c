/**
 * The Elysia application: the lifecycle of all routes.
 *
 * `onRequest` creates the request's context, the route's hooks authorize and read the body (`route-handler.ts`),
 * `onError` turns errors into responses, `mapResponse` adds common headers and records the request. Rationale:
 * `docs/decisions/07-own-http-layer.md`.
 */

import { Elysia, NotFoundError } from "elysia";
import { BunAdapter } from "elysia/adapter/bun";
import { isClientDisconnected } from "../lib/cancellation.ts";
import type { CompletedRequest, EdgeDeps, RegisteredPath, RegisteredPaths } from "./edge-deps.ts";
import { logUnexpectedError, toHttpError } from "./error-mapping.ts";
import { finishResponse } from "./finish-response.ts";
import { clientDisconnected, notFound } from "./http-error.ts";
import { registerPaths } from "./paths.ts";
import { RequestContext } from "./request-context.ts";
import { managementProfile } from "./route-profile.ts";

const unknownPath: RegisteredPath = { path: "other", profile: managementProfile, methods: new Map() };

export type EdgeApp = ReturnType<typeof createLifecycle>;

/**
 * An application that serves these paths; Elysia composes it on its first request.
 *
 * @param isSecure whether its requests arrive over TLS.
 */
export function createEdge(paths: RegisteredPaths, isSecure: boolean, deps: EdgeDeps): EdgeApp {
  const app = createLifecycle(isSecure, deps);
  registerPaths(app, paths);
  return app;
}

function createLifecycle(isSecure: boolean, deps: EdgeDeps) {
  return (
    new Elysia({
      name: "flagkeep",
      // Elysia's HEAD routes run the GET and read its body to count the bytes, even of an endless stream.
      adapter: { ...BunAdapter, isWebStandard: false },
      normalize: false,
      strictPath: true,
      // With true, Elysia searches the path after a host of typical length and fails for `http://api/`; with false it
      // searches after `http://`, which in `https://` would find the second slash.
      handler: { standardHostname: isSecure },
    })
      // As an object: with `undefined` as the second argument Elysia would add a member named "" instead.
      .decorate({ exchange: undefined as unknown as RequestContext })
      .onRequest((context) => {
        const { request } = context;
        context.exchange = new RequestContext(request, deps.getConnectionInfo(request), unknownPath, deps);
      })
      .onError({ as: "global" }, ({ error: thrown, exchange, set }) => {
        // Otherwise Elysia rebuilds the response with its own status.
        set.status = 200;
        const error = thrown instanceof NotFoundError ? notFound() : thrown;
        deps.onError?.(error);
        const { request, requestId, registered } = exchange;
        const failure = isClientDisconnected(error, request.signal)
          ? clientDisconnected()
          : toHttpError(error);
        exchange.reason = failure.message;
        if (failure.status === 500) logUnexpectedError(error, { request, requestId, log: deps.log });
        return registered.profile.reject(failure, error, exchange);
      })
      .mapResponse({ as: "global" }, async ({ exchange, responseValue }) => {
        exchange.end();
        const finished = finishResponse(responseValue, exchange.registered.profile, exchange);
        const response = finished instanceof Promise ? await finished : finished;
        deps.onSeen?.(completed(exchange, response.status));
        return response;
      })
  );
}

function completed(exchange: RequestContext, status: number): CompletedRequest {
  const { request, requestId, registered, reason, startedAt } = exchange;
  return {
    request,
    requestId,
    route: registered.path,
    isCapture: registered.profile.isCapture ?? false,
    status,
    reason,
    startedAt,
    address: () => exchange.address,
  };
}
