/**
 * What evaluation remembers, and what that is worth: 100 flags, 1,000 people who come back, two busy cores.
 *
 * Both belong to a set of compiled flags and go with it.
 *
 * | | without | with |
 * |---|---|---|
 * | places of ids: hashing is most of the time of an evaluation | 320 µs | 140 µs |
 * | answers by the words of the request: clients ask the same again and again | 140 µs | 20 µs |
 */

import { Recent } from "../../lib/recent.ts";
import type { FlagSet } from "./model.ts";

const unknown = -1;

/** The places of one id: for each flag of the set, by its position, that in the rollout and that among the variants. */
export type Places = Float64Array;

/** Of all flag sets together. */
const remembered = new Recent<FlagSet, Places>(
  16 * 1024 * 1024,
  (id, places) => id.length + places.byteLength,
);

/** What is known of an id; the caller fills in what it computes. */
export function knownPlaces(set: FlagSet, id: string): Places {
  let places = remembered.get(set, id);
  if (places === undefined) {
    places = new Float64Array(set.active.length * 2).fill(unknown);
    remembered.set(set, id, places);
  }
  return places;
}

/** Where the place in the rollout of a flag is kept. */
export function rolloutSlot(position: number): number {
  return position * 2;
}

/** Where the place among the variants of a flag is kept. */
export function variantSlot(position: number): number {
  return position * 2 + 1;
}

/** Whether a place was filled in before. */
export function isKnown(place: number | undefined): place is number {
  return place !== undefined && place !== unknown;
}

/** Requests with more text than this are seldom the same twice, and looking for a text means reading all of it. */
const wordsMax = 4_096;
const bytesPerResult = 8;

/** What is asked of an answer that is kept. */
interface Keepable {
  readonly list: readonly unknown[];
  readonly errorsWhileComputing: boolean;
}

interface Answer<Evaluation> {
  /** As stored; undefined when there was no person, or none of its properties mattered. */
  properties: string | undefined;
  evaluation: Evaluation;
}

export class AnswerMemory<Evaluation extends Keepable> {
  /** Of all projects together. */
  private readonly answers = new Recent<FlagSet, Answer<Evaluation>>(
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
