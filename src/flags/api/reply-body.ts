/**
 * Writes the detailed answer from parts that are made once.
 *
 * A flag has few outcomes, and what is written for an outcome never changes while the flag does not: with a hundred
 * flags an answer is a hundred ready parts. Says exactly what `renderFlags` says.
 */

import type { Evaluation } from "../evaluate/evaluate.ts";
import type { FlagResult } from "../evaluate/model.ts";
import { type ReplyShape, type ReplyStamp, renderFlag, renderFlags } from "./flags-reply.ts";

/** `"key":{…}` of results met so far; the same outcome of a flag is the same object until the flag changes. */
const parts = new WeakMap<FlagResult, Uint8Array>();

const encoder = new TextEncoder();
const comma = 44;

/** Where answers are put together, one after the other: a new buffer for each would keep the collector busy. */
let desk = new Uint8Array(64 * 1024);

/**
 * The body of an answer, in UTF-8.
 *
 * @param config members of the client configuration as text, or undefined for none.
 */
export function replyBody(
  evaluation: Evaluation,
  shape: ReplyShape,
  stamp: ReplyStamp,
  config: string | undefined,
): Uint8Array<ArrayBuffer> {
  const tail = config === undefined ? "}" : `,${config}}`;
  let length = 0;
  if (shape !== "details") {
    length = putText(JSON.stringify(renderFlags(evaluation, shape, stamp)).slice(0, -1) + tail, length);
    return desk.slice(0, length);
  }
  const { errorsWhileComputing, list } = evaluation;
  length = putText(`{"errorsWhileComputingFlags":${errorsWhileComputing},"flags":{`, length);
  for (const result of list) length = putPart(partOf(result), length);
  // The last part's comma makes room for what closes the flags.
  if (list.length > 0) length -= 1;
  const { requestId, evaluatedAt } = stamp;
  length = putText(`},"requestId":"${requestId}","evaluatedAt":${evaluatedAt.getTime()}${tail}`, length);
  return desk.slice(0, length);
}

function partOf(result: FlagResult): Uint8Array {
  let part = parts.get(result);
  if (part === undefined) {
    part = encoder.encode(`${JSON.stringify(result.key)}:${JSON.stringify(renderFlag(result))}`);
    parts.set(result, part);
  }
  return part;
}

/** @returns the length with the text behind it. */
function putText(text: string, length: number): number {
  makeRoom(length + text.length * 3);
  return length + encoder.encodeInto(text, desk.subarray(length)).written;
}

/** @returns the length with the part and a comma behind it. */
function putPart(part: Uint8Array, length: number): number {
  makeRoom(length + part.length + 1);
  desk.set(part, length);
  desk[length + part.length] = comma;
  return length + part.length + 1;
}

function makeRoom(length: number): void {
  if (length <= desk.length) return;
  const larger = new Uint8Array(length * 2);
  larger.set(desk);
  desk = larger;
}
