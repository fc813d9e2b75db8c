/** Asks an `RpcServer` in the working directory. */

import { AppError } from "../lib/errors.ts";
import { parseExactJson } from "../lib/exact-json.ts";
import { bytesType, failedStatus, metaHeader, RpcUpload } from "./server.ts";

/** The other side was asked and could not do it. */
export class RpcFailed extends AppError {
  constructor(
    readonly code: string,
    message: string,
    override readonly hint?: string,
  ) {
    super(message);
  }
}

/** Nobody listens, or whoever did ended before the answer. */
export class RpcUnreachable extends Error {}

export interface RpcStream {
  /** JSON text. */
  body: ReadableStream<Uint8Array>;
  meta: unknown;
}

/**
 * Asks and reads the answer, long integers as `parseExactJson` keeps them.
 *
 * @throws {RpcFailed} @throws {RpcUnreachable} @throws whatever the signal is aborted with.
 */
export async function rpcAsk(
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
    throw new RpcUnreachable("The answer broke off.");
  }
}

/** The same without reading the answer: whoever reads it decides how fast it is made. */
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

function contentOf(request: unknown): {
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
    response = await fetch(`http://appliance/${name}`, {
      unix: socketName,
      method: "POST",
      ...contentOf(request),
      signal,
      // The other side has limits of its own.
      timeout: false,
    } as RequestInit);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new RpcUnreachable(String(error));
  }
  if (response.status === failedStatus) {
    const failed = (await response.json()) as { code: string; message: string; hint?: string };
    throw new RpcFailed(failed.code, failed.message, failed.hint);
  }
  if (response.ok) return response;
  throw new RpcFailed(
    "not_known",
    `The running appliance does not know "${name}".`,
    "Start it again, so that it is of the same version as this command.",
  );
}
