import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { Command } from "commander";
import { AppError } from "../../src/lib/errors.ts";
import { run } from "../output.ts";
import { withUnusedDataDir } from "../settings.ts";

/** Tools act with a key's scopes, so a key is required. */
class MissingKeyError extends AppError {
  readonly code = "no_key";
  override readonly hint =
    "Create one with `flagkeep keys create --scope feature_flag:read --scope query:read`.";
}

const urlDefault = "http://127.0.0.1:8000";

export const mcp = withUnusedDataDir(new Command("mcp"))
  .description("Serve the Model Context Protocol over standard input and output.")
  .option("--url <address>", `base URL of the server; default ${urlDefault} [FLAGKEEP_URL]`)
  .addHelpText(
    "after",
    "\nSet FLAGKEEP_API_KEY to a personal API key; its scopes limit the tools.\n\n" +
      "Example:\n  flagkeep mcp --url https://flags.example.com",
  )
  .action(
    run(async (options: { url?: string }) => {
      const base = (options.url ?? process.env.FLAGKEEP_URL ?? urlDefault).replace(/\/+$/, "");
      const apiKey = process.env.FLAGKEEP_API_KEY;
      if (!apiKey) throw new MissingKeyError("FLAGKEEP_API_KEY is not set.");
      // Loaded lazily: only this command needs it.
      const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
      const { mcpServer } = await import("../../src/mcp/tools.ts");
      const server = mcpServer((method, path, body, signal) =>
        fetch(base + path, {
          method,
          headers: {
            Authorization: `Bearer ${apiKey}`,
            ...(body === undefined ? {} : { "Content-Type": "application/json" }),
          },
          body: body === undefined ? undefined : JSON.stringify(body),
          signal,
        }),
      );
      const transport = new StdioServerTransport();
      await server.connect(transport);
      const answered = openCalls(transport);
      await new Promise<void>((resolve) => process.stdin.once("end", resolve).once("close", resolve));
      await answered();
      await server.close();
    }),
  );

/**
 * Tracks calls without a response.
 *
 * @returns resolves once all calls have responses, also after the input has ended.
 */
function openCalls(transport: Transport): () => Promise<void> {
  const open = new Set<RequestId>();
  let onAnswer: () => void = () => undefined;
  const close = (id: RequestId) => {
    open.delete(id);
    onAnswer();
  };
  const { onmessage } = transport;
  const send = transport.send.bind(transport);
  transport.onmessage = (message: JSONRPCMessage, extra) => {
    if ("method" in message && "id" in message) open.add(message.id);
    // Cancelled calls get no response.
    if ("method" in message && message.method === "notifications/cancelled")
      close(message.params?.requestId as RequestId);
    onmessage?.(message, extra);
  };
  transport.send = async (message) => {
    await send(message);
    if (!("method" in message) && message.id !== undefined) close(message.id);
  };
  return async () => {
    while (open.size > 0) {
      await new Promise<void>((resolve) => {
        onAnswer = resolve;
      });
    }
  };
}
