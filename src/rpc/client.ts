/** Client of an `RpcServer` in the working directory. */

import { AppError } from "../lib/errors.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import { bytesType, failedStatus, metaHeader, RpcUpload } from "./server.ts";

/** The call failed on the other side. */
export class RpcError extends AppError {
  constructor(
    readonly code: string,
    message: string,
    override readonly hint?: string,
  ) {
    super(message);
  }
}

/** No process listens, or it exited before the response. */
export class RpcUnreachableError extends Error {}

export interface RpcStream {
  /** UTF-8 JSON. */
  body: ReadableStream<Uint8Array>;
  meta: unknown;
}

/**
 * Sends a call and parses the response; large integers stay exact (`parseExactJson`).
 * @throws {RpcError} @throws {RpcUnreachableError} @throws the abort reason of the signal
 */
export async function rpcCall(
  socketName: string,
  name: string,
  request?: unknown,
  signal?: AbortSignal,
): Promise<unknown> {
  const response = await post(socketName, name, request, signal);
  try {
    return parseExactJson(await response.text());
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RpcUnreachableError("The response is incomplete.");
  }
}

/** Like `rpcCall`, but streams the response at the reader's pace. */
export async function rpcStream(
  socketName: string,
  name: string,
  request?: unknown,
  signal?: AbortSignal,
): Promise<RpcStream> {
  const response = await post(socketName, name, request, signal);
  const meta = response.headers.get(metaHeader);
  return { body: response.body!, meta: meta === null ? null : JSON.parse(decodeURIComponent(meta)) };
}

function getContent(request: unknown): {
  body?: string | Uint8Array<ArrayBuffer>;
  headers?: Record<string, string>;
} {
  if (request === undefined) return {};
  if (!(request instanceof RpcUpload)) return { body: JSON.stringify(request) };
  const { meta, bytes } = request;
  return {
    body: bytes as Uint8Array<ArrayBuffer>,
    headers: { "Content-Type": bytesType, [metaHeader]: encodeURIComponent(JSON.stringify(meta)) },
  };
}

async function post(
  socketName: string,
  name: string,
  request: unknown,
  signal: AbortSignal | undefined,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`http://server/${name}`, {
      unix: socketName,
      method: "POST",
      ...getContent(request),
      signal,
      // The server applies its own timeouts.
      timeout: false,
    } as RequestInit);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RpcUnreachableError(String(error));
  }
  if (response.status === failedStatus) {
    const failed = (await response.json()) as { code: string; message: string; hint?: string };
    throw new RpcError(failed.code, failed.message, failed.hint);
  }
  if (response.ok) return response;
  throw new RpcError(
    "not_known",
    `The running server does not support "${name}".`,
    "Restart it with the same version as this command.",
  );
}
