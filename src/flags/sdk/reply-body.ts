/**
 * Builds the detailed response from cached parts.
 *
 * A flag has few outcomes, and the JSON of an outcome never changes while the flag does not: with a hundred flags a
 * response is a hundred cached parts. Equivalent to `renderFlags`.
 */

import type { Evaluation } from "../evaluate/evaluate.ts";
import type { FlagResult } from "../evaluate/model.ts";
import { type ReplyShape, type ReplyStamp, renderFlag, renderFlags } from "./flags-reply.ts";

/** `"key":{…}` of earlier results; the same outcome of a flag is the same object until the flag changes. */
const parts = new WeakMap<FlagResult, Uint8Array>();

const encoder = new TextEncoder();
const comma = 44;

/**
 * The response body, in UTF-8.
 *
 * @param config members of the client configuration as JSON, or undefined for none.
 */
export function replyBody(
  evaluation: Evaluation,
  shape: ReplyShape,
  stamp: ReplyStamp,
  config: string | undefined,
): Uint8Array<ArrayBuffer> {
  const tail = config === undefined ? "}" : `,${config}}`;
  if (shape !== "details") {
    return encoder.encode(JSON.stringify(renderFlags(evaluation, shape, stamp)).slice(0, -1) + tail);
  }
  const { errorsWhileComputing, list } = evaluation;
  const { requestId, evaluatedAt } = stamp;
  return bodyOfParts(`{"errorsWhileComputingFlags":${errorsWhileComputing},"flags":{`, {
    parts: list.map(getPart),
    tail: `},"requestId":"${requestId}","evaluatedAt":${evaluatedAt.getTime()}${tail}`,
  });
}

/** Comma-separated cached parts, in UTF-8. */
export function bodyOfParts(
  head: string,
  { parts, tail }: { parts: readonly Uint8Array[]; tail: string },
): Uint8Array<ArrayBuffer> {
  const first = encoder.encode(head);
  const last = encoder.encode(tail);
  let length = first.length + last.length + Math.max(0, parts.length - 1);
  for (const part of parts) length += part.length;
  // allocUnsafe: every byte is overwritten.
  const body = Buffer.allocUnsafeSlow(length);
  body.set(first);
  let at = first.length;
  for (const [index, part] of parts.entries()) {
    if (index > 0) body[at++] = comma;
    body.set(part, at);
    at += part.length;
  }
  body.set(last, at);
  return body;
}

function getPart(result: FlagResult): Uint8Array {
  let part = parts.get(result);
  if (part === undefined) {
    part = encoder.encode(`${JSON.stringify(result.key)}:${JSON.stringify(renderFlag(result))}`);
    parts.set(result, part);
  }
  return part;
}
