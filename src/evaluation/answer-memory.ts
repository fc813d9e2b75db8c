/**
 * Remembers what was computed for a request, word for word: clients ask the same again and again, and mostly nothing
 * that the answer depends on has changed meanwhile.
 *
 * An answer belongs to one flag set, goes away with it, and holds for one text of the person's stored properties.
 * All projects together hold a bounded number of bytes.
 */

import type { Evaluation } from "../flags/evaluation/evaluate.ts";
import type { FlagSet } from "../flags/evaluation/flag-set.ts";

const bytesMaxByDefault = 32 * 1024 * 1024;
/** Requests with more text than this are seldom the same twice. */
const wordsMax = 4_096;
/** What an answer costs beside its texts and results. */
const overheadBytes = 300;

interface Answer {
  /** JSON text; undefined when there was no person, or none of its properties mattered. */
  properties: string | undefined;
  evaluation: Evaluation;
}

type Generation = WeakMap<FlagSet, Map<string, Answer>>;

export class AnswerMemory {
  #recent: Generation = new WeakMap();
  #older: Generation = new WeakMap();
  #recentBytes = 0;

  constructor(private readonly bytesMax = bytesMaxByDefault) {}

  /**
   * What the same words got before.
   *
   * @param words all of the request that evaluation looks at.
   */
  find(set: FlagSet, words: string, properties: string | undefined): Evaluation | undefined {
    const recent = this.#recent.get(set)?.get(words);
    if (recent !== undefined) return recent.properties === properties ? recent.evaluation : undefined;
    const older = this.#older.get(set)?.get(words);
    if (older === undefined || older.properties !== properties) return undefined;
    this.keep(set, words, properties, older.evaluation);
    return older.evaluation;
  }

  keep(set: FlagSet, words: string, properties: string | undefined, evaluation: Evaluation): void {
    if (words.length > wordsMax) return;
    const bytes = words.length + (properties?.length ?? 0) + evaluation.list.length * 8 + overheadBytes;
    if (this.#recentBytes + bytes > this.bytesMax / 2) {
      // Two generations: what was not asked for during the last one is forgotten.
      this.#older = this.#recent;
      this.#recent = new WeakMap();
      this.#recentBytes = 0;
    }
    this.#recentBytes += bytes;
    let answers = this.#recent.get(set);
    if (answers === undefined) {
      answers = new Map();
      this.#recent.set(set, answers);
    }
    answers.set(words, { properties, evaluation });
  }
}
