/** `/mcp`: the Model Context Protocol over HTTP, stateless (no sessions). */

import { userRoute } from "../accounts/api/routes.ts";
import { notAuthenticated } from "../http/http-error.ts";
import type { Route } from "../http/route.ts";
import { openObject } from "../http/schemas.ts";

export interface McpDeps {
  /** Handles a request to the management API. */
  handle: (request: Request) => Promise<Response>;
}

/** Loaded on first use: most servers never need it, and the library takes 11 MB. */
async function protocol() {
  const [{ mcpServer }, { WebStandardStreamableHTTPServerTransport }] = await Promise.all([
    import("./tools.ts"),
    import("@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"),
  ]);
  return { mcpServer, Transport: WebStandardStreamableHTTPServerTransport };
}

/** Rejects invalid keys; the API behind it checks permissions. */
export function mcpRoutes({ handle }: McpDeps): Route[] {
  const route = userRoute("POST", "/mcp", [], {
    summary: "Model Context Protocol endpoint",
    description:
      "JSON-RPC of MCP, with a personal key as `Authorization: Bearer`. Tools list, explain, create, update, delete and restore flags, run experiments, list and create surveys, list and create cohorts, set stages of early access features, and query events. They reject unknown arguments and require the scopes of their API routes.",
    tag: "Model Context Protocol",
    allowsScopedKeys: true,
    takesRawBody: true,
    // Long-running because a tool call is itself a request.
    isLongRunning: true,
    answers: {
      200: {
        description: "The answer.",
        schema: openObject({}),
        example: { jsonrpc: "2.0", id: 1, result: {} },
      },
      202: { description: "The notification was accepted." },
    },
    handle: async ({ request, body, baseUrl }) => {
      const authorization = request.headers.get("authorization");
      // Tools authenticate by key only, never by the console's cookie.
      if (authorization === null) throw notAuthenticated();
      const { mcpServer, Transport } = await protocol();
      // Internal requests do not pass the proxy that would strip a path prefix, so only the origin is used.
      const { origin } = new URL(baseUrl);
      const server = mcpServer((method, path, sent, signal) =>
        handle(
          new Request(origin + path, {
            method,
            headers: {
              authorization,
              ...(sent === undefined ? {} : { "content-type": "application/json" }),
            },
            body: sent === undefined ? undefined : JSON.stringify(sent),
            signal: signal === undefined ? request.signal : AbortSignal.any([request.signal, signal]),
          }),
        ),
      );
      const transport = new Transport({ enableJsonResponse: true });
      await server.connect(transport);
      try {
        const response = await transport.handleRequest(
          new Request(request.url, { method: "POST", headers: request.headers }),
          { parsedBody: body },
        );
        // Read the body before the MCP server closes, which ends open streams.
        return new Response(await response.text(), { status: response.status, headers: response.headers });
      } finally {
        await server.close();
      }
    },
  });
  // The requests of its tools are counted instead.
  return [{ ...route, bucket: "none" }];
}
