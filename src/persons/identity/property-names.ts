/**
 * The property names of a `PropertyState`, by slot. Most states have the same names in the same order as many others:
 * lists are shared, each caches the list that follows with one more name, and derived data is computed once per list.
 */

/** States with more names have an unshared list. */
const sharedNamesMax = 100;
/**
 * Names in all shared lists; long names count several times. Above this, sharing starts over; states keep their lists.
 */
const retainedNamesMax = 100_000;
const typicalNameLength = 64;

export class PropertyNames {
  /** Whether names include integers, which JavaScript objects list first regardless of insertion order. */
  haveIndexes = false;
  private readonly slots: Map<string, number>;
  private readonly following = new Map<string, PropertyNames>();
  private writtenPrefixes: string[] | undefined;
  private foundTwins: number[] | undefined;
  /** Recently requested name lists; only few are requested repeatedly. */
  private readonly slotLists: { names: readonly string[]; slots: readonly number[] }[] = [];

  private constructor(
    private readonly held: string[],
    readonly isShared: boolean,
  ) {
    this.slots = new Map(held.map((name, slot) => [name, slot]));
    this.haveIndexes = held.some((name) => startsWithDigit.test(name));
  }

  private static empty = new PropertyNames([], true);
  private static retainedBytes = 0;

  /** The names of an empty state. */
  static get none(): PropertyNames {
    return PropertyNames.empty;
  }

  /** @param names without duplicates */
  static from(names: readonly string[]): PropertyNames {
    if (names.length > sharedNamesMax) return new PropertyNames([...names], false);
    return names.reduce((list, name) => list.with(name), PropertyNames.none);
  }

  get names(): readonly string[] {
    return this.held;
  }

  get count(): number {
    return this.held.length;
  }

  /** Undefined for unknown names. */
  slotOf(name: string): number | undefined {
    return this.slots.get(name);
  }

  /** The slots of names; -1 for unknown ones. */
  slotsOf(names: readonly string[]): readonly number[] {
    // A loop is faster than a map; called twice per event.
    for (const known of this.slotLists) if (known.names === names) return known.slots;
    const slots = names.map((name) => this.slots.get(name) ?? -1);
    if (!this.isShared) return slots;
    if (this.slotLists.length === slotListsMax) this.slotLists.shift();
    this.slotLists.push({ names, slots });
    return slots;
  }

  /** The list with one more name, which must be new: this list itself, if it is not shared. */
  with(name: string): PropertyNames {
    if (!this.isShared) {
      this.add(name);
      return this;
    }
    const known = this.following.get(name);
    if (known !== undefined) return known;
    const isShared = this.held.length < sharedNamesMax;
    const list = new PropertyNames([...this.held, name], isShared);
    if (isShared) this.share(name, list);
    return list;
  }

  private share(name: string, list: PropertyNames): void {
    this.following.set(name, list);
    PropertyNames.retainedBytes += list.count + Math.floor(name.length / typicalNameLength);
    if (PropertyNames.retainedBytes <= retainedNamesMax) return;
    PropertyNames.empty = new PropertyNames([], true);
    PropertyNames.retainedBytes = 0;
  }

  private add(name: string): void {
    this.slots.set(name, this.held.length);
    this.held.push(name);
    this.haveIndexes ||= startsWithDigit.test(name);
    this.writtenPrefixes = undefined;
    this.foundTwins = undefined;
  }

  /** The JSON before each value, without the comma. */
  get prefixes(): readonly string[] {
    this.writtenPrefixes ??= this.held.map((name) => `${JSON.stringify(name)}:`);
    return this.writtenPrefixes;
  }

  /**
   * A property and its initial property often have equal values. Of each such pair, the later one has the slot of the
   * other; all others have -1.
   */
  get twins(): readonly number[] {
    this.foundTwins ??= this.held.map((name, slot) => {
      const before = this.slotOfTwin(name);
      return before !== undefined && before < slot ? before : -1;
    });
    return this.foundTwins;
  }

  private slotOfTwin(name: string): number | undefined {
    if (!name.startsWith(initialStart)) return this.slots.get(initialName(name));
    const rest = name.slice(initialStart.length);
    return this.slots.get(`$${rest}`) ?? this.slots.get(rest);
  }
}

const slotListsMax = 12;
const startsWithDigit = /^\d/;
const initialStart = "$initial_";

/** The name of the property that keeps a property's first value. */
export function initialName(name: string): string {
  return initialStart + name.replace(/^\$/, "");
}
