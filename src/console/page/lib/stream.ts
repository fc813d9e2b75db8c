/** Reads server-sent events with `fetch`: `EventSource` cannot send the header that the session requires. */

import { send } from "./api.ts";

export interface Message {
  event: string;
  data: string;
}

/**
 * Passes on each message until the stream ends or is aborted. Comments and ids are skipped.
 *
 * @throws {ApiError} and AbortError.
 */
export async function readStream(
  path: string,
  signal: AbortSignal,
  onMessage: (message: Message) => void,
  onOpen?: () => void,
): Promise<void> {
  const response = await send(path, { signal, accept: "text/event-stream" });
  onOpen?.();
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = blocks.pop()!;
    for (const block of blocks) {
      let event = "message";
      const data: string[] = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("event:")) event = line.slice(6).trim();
        else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      }
      if (data.length > 0) onMessage({ event, data: data.join("\n") });
    }
  }
}
