/** `/mcp`: the Model Context Protocol over HTTP, without sessions: each request stands for itself. */

import { userRoute } from "../accounts/api/routes.ts";
import { notAuthenticated } from "../http/failure.ts";
import type { Route } from "../http/route.ts";
import { openObject } from "../http/shapes.ts";

export interface McpDeps {
  /** Answers a request to the management API. */
  handle: (request: Request) => Promise<Response>;
}

/** Loaded at the first request: most servers are never asked, and the library takes 11 MB. */
async function protocol() {
  const [{ mcpServer }, { WebStandardStreamableHTTPServerTransport }] = await Promise.all([
    import("./tools.ts"),
    import("@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js"),
  ]);
  return { mcpServer, Transport: WebStandardStreamableHTTPServerTransport };
}

/** The route. It rejects invalid keys; which tools do what for whom, the API behind them decides. */
export function mcpRoutes({ handle }: McpDeps): Route[] {
  const route = userRoute("POST", "/mcp", [], {
    summary: "Speak the Model Context Protocol",
    description:
      "JSON-RPC as MCP clients send it, with a personal key as `Authorization: Bearer`. Tools list, explain, create, change, delete and restore flags and query events, and reject arguments they do not have; each needs the scope that its API route needs.",
    tag: "Model Context Protocol",
    ignoresNarrowing: true,
    takesRawBody: true,
    // What it calls is a request of its own.
    takesLong: true,
    answers: {
      200: {
        description: "The answer.",
        schema: openObject({}),
        example: { jsonrpc: "2.0", id: 1, result: {} },
      },
      202: { description: "A notification was taken." },
    },
    handle: async ({ request, body, baseUrl }) => {
      const authorization = request.headers.get("authorization");
      // The cookie of the console says nothing here: tools act with a key.
      if (authorization === null) throw notAuthenticated();
      const { mcpServer, Transport } = await protocol();
      // Here there is no proxy that takes away the prefix by which clients come.
      const { origin } = new URL(baseUrl);
      const server = mcpServer((method, path, sent, given) =>
        handle(
          new Request(origin + path, {
            method,
            headers: {
              authorization,
              ...(sent === undefined ? {} : { "content-type": "application/json" }),
            },
            body: sent === undefined ? undefined : JSON.stringify(sent),
            signal: given === undefined ? request.signal : AbortSignal.any([request.signal, given]),
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
        // Read before the server goes, which ends what is still open.
        return new Response(await response.text(), { status: response.status, headers: response.headers });
      } finally {
        await server.close();
      }
    },
  });
  // The requests of its tools are counted instead.
  return [{ ...route, bucket: "none" }];
}
