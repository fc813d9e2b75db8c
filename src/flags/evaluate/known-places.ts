/**
 * Remembers where ids fall, flag by flag: hashing is most of the time of an evaluation, and the same people come back.
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
