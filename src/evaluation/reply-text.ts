/**
 * Writes the detailed answer as text, from parts that are made once.
 *
 * A flag has few outcomes, and what is written for an outcome never changes while the flag does not: with a hundred
 * flags an answer is a hundred ready parts. Says exactly what `renderFlags` says.
 */

import type { Evaluation, FlagResult } from "../flags/evaluation/evaluate.ts";
import { type ReplyShape, type ReplyStamp, renderFlag, renderFlags } from "../flags/responses/flags-reply.ts";

/** `"key":{…}` of results met so far; the same outcome of a flag is the same object until the flag changes. */
const texts = new WeakMap<FlagResult, string>();

/**
 * The body of an answer.
 *
 * @param config members of the client configuration as text, or undefined for none.
 */
export function replyText(
  evaluation: Evaluation,
  shape: ReplyShape,
  stamp: ReplyStamp,
  config: string | undefined,
): string {
  const tail = config === undefined ? "}" : `,${config}}`;
  if (shape !== "details") {
    return JSON.stringify(renderFlags(evaluation, shape, stamp)).slice(0, -1) + tail;
  }
  const parts = evaluation.list.map(partOf);
  return `{"errorsWhileComputingFlags":${evaluation.errorsWhileComputing},"flags":{${parts.join(",")}},"requestId":"${stamp.requestId}","evaluatedAt":${stamp.evaluatedAt.getTime()}${tail}`;
}

function partOf(result: FlagResult): string {
  const known = texts.get(result);
  if (known !== undefined) return known;
  // Through `join`, which makes one piece of text; a sum would be put together again for every answer.
  const text = [JSON.stringify(result.key), JSON.stringify(renderFlag(result))].join(":");
  texts.set(result, text);
  return text;
}
