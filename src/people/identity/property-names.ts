/**
 * The names of a bag's properties, by slot.
 *
 * Most bags have the same names in the same order as many others, so a list knows which one it becomes with one more name,
 * and what was worked out for a list is there for all bags that have it.
 */

/** A bag of more names has a list of its own, as has one that comes to its names when there are too many lists. */
const sharedNamesMax = 100;
/** Names in all shared lists, long ones counting for several. Beyond it they are begun anew: bags hold on to those they have. */
const keptNamesMax = 100_000;
const usualNameLength = 64;

export class PropertyNames {
  /** Some are numbers, which objects list first whatever the order in which they came. */
  haveIndexes = false;
  private readonly slots: Map<string, number>;
  private readonly following = new Map<string, PropertyNames>();
  private writtenPrefixes: string[] | undefined;
  private foundTwins: number[] | undefined;
  /** Of names that were asked for lately; few lists are asked for again and again. */
  private readonly slotLists: { names: readonly string[]; slots: readonly number[] }[] = [];

  private constructor(
    private readonly held: string[],
    readonly isShared: boolean,
  ) {
    this.slots = new Map(held.map((name, slot) => [name, slot]));
    this.haveIndexes = held.some((name) => startsWithDigit.test(name));
  }

  private static empty = new PropertyNames([], true);
  private static kept = 0;

  /** Of a bag without properties. */
  static get none(): PropertyNames {
    return PropertyNames.empty;
  }

  /** @param names all different. */
  static of(names: readonly string[]): PropertyNames {
    if (names.length > sharedNamesMax) return new PropertyNames([...names], false);
    return names.reduce((list, name) => list.with(name), PropertyNames.none);
  }

  get names(): readonly string[] {
    return this.held;
  }

  get count(): number {
    return this.held.length;
  }

  /** Undefined for a name that is not there. */
  slotOf(name: string): number | undefined {
    return this.slots.get(name);
  }

  /** The slots of some names; -1 for one that is not there. */
  slotsOf(names: readonly string[]): readonly number[] {
    // A loop: this is asked twice for every event, and a map would take longer.
    for (const known of this.slotLists) if (known.names === names) return known.slots;
    const slots = names.map((name) => this.slots.get(name) ?? -1);
    if (!this.isShared) return slots;
    if (this.slotLists.length === slotListsMax) this.slotLists.shift();
    this.slotLists.push({ names, slots });
    return slots;
  }

  /** The list with one more name, which it does not have: this one, if it is not shared. */
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
    PropertyNames.kept += list.count + Math.floor(name.length / usualNameLength);
    if (PropertyNames.kept <= keptNamesMax) return;
    PropertyNames.empty = new PropertyNames([], true);
    PropertyNames.kept = 0;
  }

  private add(name: string): void {
    this.slots.set(name, this.held.length);
    this.held.push(name);
    this.haveIndexes ||= startsWithDigit.test(name);
    this.writtenPrefixes = undefined;
    this.foundTwins = undefined;
  }

  /** What stands before each value in a JSON object, without the comma. */
  get prefixes(): readonly string[] {
    this.writtenPrefixes ??= this.held.map((name) => `${JSON.stringify(name)}:`);
    return this.writtenPrefixes;
  }

  /**
   * Of a property and the one that keeps its first value, which often is the same, the later one has the slot of the other
   * here; all others have -1.
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

/** The name of the property that keeps the first value of another one. */
export function initialName(name: string): string {
  return initialStart + name.replace(/^\$/, "");
}
