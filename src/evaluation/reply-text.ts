/**
 * Writes the detailed answer as text, from parts that are made once.
 *
 * A flag has few outcomes, and what is written for an outcome never changes while the flag does not: with a hundred
 * flags an answer is a hundred ready parts. Says exactly what `renderFlags` says.
 */

import type { Evaluation, FlagResult } from "../flags/evaluation/evaluate.ts";
import type { FlagSet } from "../flags/evaluation/flag-set.ts";
import { type ReplyShape, type ReplyStamp, renderFlag, renderFlags } from "../flags/responses/flags-reply.ts";

/** More outcomes than this are written anew each time; only failures with varying texts could come here. */
const OUTCOMES_PER_FLAG_MAX = 64;

interface Outcome {
  result: FlagResult;
  /** `"key":{…}` */
  text: string;
}

/** The outcomes met so far of the flags of one set; goes away with the set. */
const outcomesBySet = new WeakMap<FlagSet, Map<string, Outcome[]>>();

/**
 * The body of an answer.
 *
 * @param config members of the client configuration as text, or undefined for none.
 */
export function replyText(
  set: FlagSet,
  evaluation: Evaluation,
  shape: ReplyShape,
  stamp: ReplyStamp,
  config: string | undefined,
): string {
  const tail = config === undefined ? "}" : `,${config}}`;
  if (shape !== "details") {
    return JSON.stringify(renderFlags(evaluation, shape, stamp)).slice(0, -1) + tail;
  }
  let outcomes = outcomesBySet.get(set);
  if (outcomes === undefined) {
    outcomes = new Map();
    outcomesBySet.set(set, outcomes);
  }
  let text = `{"errorsWhileComputingFlags":${evaluation.errorsWhileComputing},"flags":{`;
  let separator = "";
  for (const result of evaluation.list) {
    text += separator + partOf(result, outcomes);
    separator = ",";
  }
  return `${text}},"requestId":"${stamp.requestId}","evaluatedAt":${stamp.evaluatedAt.getTime()}${tail}`;
}

function partOf(result: FlagResult, outcomes: Map<string, Outcome[]>): string {
  let known = outcomes.get(result.key);
  if (known === undefined) {
    known = [];
    outcomes.set(result.key, known);
  }
  for (const outcome of known) if (isSame(outcome.result, result)) return outcome.text;
  const text = `${JSON.stringify(result.key)}:${JSON.stringify(renderFlag(result))}`;
  if (known.length < OUTCOMES_PER_FLAG_MAX) known.push({ result, text });
  return text;
}

/** The payload follows from the rest. */
function isSame(a: FlagResult, b: FlagResult): boolean {
  if (a.enabled !== b.enabled || a.variant !== b.variant || a.failed !== b.failed) return false;
  return (
    a.reason === b.reason ||
    (a.reason.code === b.reason.code &&
      a.reason.conditionIndex === b.reason.conditionIndex &&
      a.reason.description === b.reason.description)
  );
}
