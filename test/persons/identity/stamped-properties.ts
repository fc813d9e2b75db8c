/**
 * Properties whose writes bear numbers of the journal, so that partitions of a cluster apply them in any order: the same
 * writes give the same values. A set beats a once, the highest number wins among sets and the lowest among onces; an
 * unset covers what is below its number. Between the lanes the order of application decides, except that history never
 * replaces a realtime write with a later event time (contract, README "Deviations", decision 1). Pure.
 *
 * One pair of rules does not commute: an unset that arrives late cannot restore a once that a value has masked.
 */

type WriteKind = "set" | "once" | "unset";

/** A write to one property. */
export interface StampedWrite {
  kind: WriteKind;
  name: string;
  /** JSON; empty for unsets. */
  text: string;
  /** Number in the journal; the writes of one event share it. */
  number: number;
  historical: boolean;
  timeMicros: number;
}

/** The merge of a person into another one, as far as properties are concerned. */
export type StampedMerge = Pick<StampedWrite, "number" | "historical" | "timeMicros">;

/** A property, also after its value was unset. */
export interface StampedProperty {
  /** The write that stands, its lane and number. */
  kind: WriteKind;
  text: string;
  number: number;
  historical: boolean;
  /** Number of the last known unset in each lane; 0 if none. */
  realtimeUnset: number;
  historicalUnset: number;
  /** Number and event time of the last realtime write that counted; 0 and negative infinity if none. */
  realtimeNumber: number;
  realtimeMicros: number;
}

export type StampedProperties = Map<string, StampedProperty>;

const neverInRealtime = Number.NEGATIVE_INFINITY;

/** Applies a write; partitions may do so in any order. */
export function applyWrite(properties: StampedProperties, write: StampedWrite): void {
  const found = properties.get(write.name);
  properties.set(write.name, found === undefined ? newProperty(write) : written(found, write));
}

function newProperty({ kind, text, number, historical, timeMicros }: StampedWrite): StampedProperty {
  const unset = kind === "unset" ? number : 0;
  return {
    kind,
    text,
    number,
    historical,
    realtimeUnset: historical ? 0 : unset,
    historicalUnset: historical ? unset : 0,
    realtimeNumber: historical ? 0 : number,
    realtimeMicros: historical ? neverInRealtime : timeMicros,
  };
}

function written(before: StampedProperty, write: StampedWrite): StampedProperty {
  if (write.historical && write.timeMicros < before.realtimeMicros) return before;
  const { number } = write;
  const lastUnset = write.historical ? before.historicalUnset : before.realtimeUnset;
  if (write.kind === "unset") {
    if (number <= lastUnset) return before;
    const after = standsAgainst(before, write, number >= before.number) ? acquired(before, write) : before;
    return write.historical ? { ...after, historicalUnset: number } : { ...after, realtimeUnset: number };
  }
  if (number < lastUnset) return before;
  if (write.kind === "set") {
    const isNext = before.kind !== "set" || number >= before.number;
    return standsAgainst(before, write, isNext) ? acquired(before, write) : before;
  }
  if (before.kind === "unset") {
    // A realtime value that history has unset masked the earlier onces.
    const wasMasked = before.historical && !write.historical && number < before.realtimeNumber;
    return wasMasked ? before : acquired(before, write);
  }
  const isFirst = before.kind === "once" && before.historical === write.historical && number < before.number;
  return isFirst ? acquired(before, write) : before;
}

/**
 * Whether a set or unset replaces what stands.
 * @param isNext whether its number says so within the lane
 */
function standsAgainst(before: StampedProperty, write: StampedWrite, isNext: boolean): boolean {
  if (before.historical === write.historical) return isNext;
  // History replaces realtime by application; realtime replaces history unless a newer realtime write is below it.
  return write.historical || write.number > before.realtimeNumber;
}

function acquired(before: StampedProperty, { kind, text, number, historical, timeMicros }: StampedWrite) {
  const after = { ...before, kind, text, number, historical };
  return historical ? after : { ...after, realtimeNumber: number, realtimeMicros: timeMicros };
}

/**
 * Merges the properties of a person that is merged into another one: the target's values win, except over writes that
 * are later than the merge, which go by their numbers. All writes of the merge's lane below its number are applied by
 * then; those of the other lane count as earlier.
 */
export function absorbProperties(
  target: StampedProperties,
  merged: ReadonlyMap<string, StampedProperty>,
  merge: StampedMerge,
): void {
  for (const [name, theirs] of merged) {
    const ours = target.get(name);
    target.set(name, ours === undefined ? theirs : mergedProperty(ours, theirs, merge));
  }
}

function mergedProperty(
  ours: StampedProperty,
  theirs: StampedProperty,
  merge: StampedMerge,
): StampedProperty {
  const areOursLate = isLate(ours, merge);
  const areTheirsLate = isLate(theirs, merge);
  if (areOursLate && areTheirsLate) return joined(ours, theirs, merge);
  if (areOursLate) return covering(theirs, ours, merge);
  if (areTheirsLate) return covering(ours, theirs, merge);
  return isMigrated(ours, theirs, merge) ? theirs : ours;
}

function isLate(property: StampedProperty, merge: StampedMerge): boolean {
  if (!merge.historical)
    return property.realtimeNumber >= merge.number || property.realtimeUnset >= merge.number;
  return property.historical && Math.max(property.number, property.historicalUnset) >= merge.number;
}

/** A property from before the merge, and one that was written later. */
function covering(earlier: StampedProperty, late: StampedProperty, merge: StampedMerge): StampedProperty {
  // Whatever history is later than the merge may still be earlier than a realtime write.
  if (merge.historical && late.realtimeMicros < earlier.realtimeMicros) return earlier;
  const lateUnset = merge.historical ? late.historicalUnset : late.realtimeUnset;
  const isOnce = late.kind === "once" && late.historical === merge.historical && lateUnset < merge.number;
  // A late once finds a value.
  if (!isOnce || earlier.kind === "unset") return withUnsets(late, earlier);
  return withUnsets(earlier, late);
}

/** Two properties that were written later than the merge, as if the writes had come to one person. */
function joined(ours: StampedProperty, theirs: StampedProperty, merge: StampedMerge): StampedProperty {
  if (ours.historical !== merge.historical || theirs.historical !== merge.historical)
    return ours.realtimeNumber >= theirs.realtimeNumber ? ours : theirs;
  if (merge.historical && ours.realtimeMicros !== theirs.realtimeMicros)
    return ours.realtimeMicros > theirs.realtimeMicros ? ours : theirs;
  const lateUnset = merge.historical ? theirs.historicalUnset : theirs.realtimeUnset;
  // Checked against realtime when they were applied.
  const timeMicros = merge.historical ? Number.POSITIVE_INFINITY : theirs.realtimeMicros;
  const write = { name: "", historical: merge.historical, timeMicros };
  let property = ours;
  if (lateUnset > 0) property = written(property, { ...write, kind: "unset", text: "", number: lateUnset });
  if (theirs.kind === "unset") return property;
  return written(property, { ...write, kind: theirs.kind, text: theirs.text, number: theirs.number });
}

function withUnsets(property: StampedProperty, other: StampedProperty): StampedProperty {
  return {
    ...property,
    realtimeUnset: Math.max(property.realtimeUnset, other.realtimeUnset),
    historicalUnset: Math.max(property.historicalUnset, other.historicalUnset),
  };
}

/** Whether the merged person's property replaces the target's, both from before the merge: `PropertyState.absorb`. */
function isMigrated(ours: StampedProperty, theirs: StampedProperty, merge: StampedMerge): boolean {
  const ourMicros = ours.realtimeMicros;
  const theirMicros = theirs.realtimeMicros;
  // An unset that only history wrote leaves nothing behind.
  if (theirs.kind === "unset" && theirMicros === neverInRealtime) return false;
  if (ours.kind === "unset" && ourMicros === neverInRealtime) return true;
  if (ourMicros === neverInRealtime || theirMicros === neverInRealtime) return ourMicros < theirMicros;
  if (theirs.kind !== "unset" && ours.kind === "unset")
    return !(merge.historical && ourMicros > merge.timeMicros && ourMicros > theirMicros);
  if (ours.kind === "unset") return theirMicros > ourMicros;
  return merge.historical && theirMicros > merge.timeMicros && theirMicros > ourMicros;
}
