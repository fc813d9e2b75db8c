/**
 * Remembers what was computed for a request, word for word: clients ask the same again and again, and mostly nothing
 * that the answer depends on has changed meanwhile.
 */

import { Recent } from "../../lib/recent.ts";
import type { Evaluation } from "../evaluate/evaluate.ts";
import type { FlagSet } from "../evaluate/model.ts";

/** Requests with more text than this are seldom the same twice, and looking for a text means reading all of it. */
const wordsMax = 4_096;
const bytesPerResult = 8;

interface Answer {
  /** JSON text; undefined when there was no person, or none of its properties mattered. */
  properties: string | undefined;
  evaluation: Evaluation;
}

export class AnswerMemory {
  /** Of all projects together. */
  private readonly answers = new Recent<FlagSet, Answer>(
    32 * 1024 * 1024,
    (words, { properties = "", evaluation }) =>
      words.length + properties.length + evaluation.list.length * bytesPerResult,
  );

  /**
   * What the same words got before from the same flags, for a person with the same stored properties.
   *
   * @param words all of the request that evaluation looks at.
   */
  find(set: FlagSet, words: string, properties: string | undefined): Evaluation | undefined {
    if (words.length > wordsMax) return undefined;
    const answer = this.answers.get(set, words);
    return answer?.properties === properties ? answer?.evaluation : undefined;
  }

  /** Answers with failures are not kept: they are few, and a failure is an object of its own each time. */
  keep(set: FlagSet, words: string, properties: string | undefined, evaluation: Evaluation): void {
    if (words.length > wordsMax || evaluation.errorsWhileComputing) return;
    this.answers.set(set, words, { properties, evaluation });
  }
}
