/**
 * The persons touched by a batch of events, in memory: loaded before the batch, changed by `person-rules.ts`, written
 * afterwards. They may be kept for the next batch, which often touches the same persons.
 */

import { personUuid } from "./distinct-ids.ts";
import { PropertyState } from "./property-state.ts";

/** A person as stored. */
export interface StoredPerson {
  rowId: number;
  projectId: number;
  uuid: string;
  mainDistinctId: string;
  isMainAlias: boolean;
  joinedCount: number;
  isIdentified: boolean;
  createdMicros: number;
  version: number;
}

/** Stored values that determine which columns have to be written. */
export interface StoredRow extends Pick<StoredPerson, "isMainAlias" | "createdMicros"> {
  /** Null if empty, or if the properties were not read. */
  searchText: string | null;
  /** Length of the properties; 0 if they were not read. */
  characters: number;
}

/** A person during a batch; changes of visible fields require `markChanged`. */
export class Person implements StoredPerson {
  readonly rowId: number;
  readonly projectId: number;
  readonly uuid: string;
  mainDistinctId: string;
  isMainAlias: boolean;
  joinedCount: number;
  isIdentified: boolean;
  createdMicros: number;
  version: number;
  /** The row must be written. */
  isDirty: boolean;
  /** A visible field differs from before the batch. */
  isVisiblyChanged: boolean;
  isFolded = false;
  /** IDs that joined during the batch, in order. */
  joinedNow: DistinctId[] = [];
  /** Values in the store. */
  stored: Readonly<StoredRow>;
  private openedBag: PropertyState | undefined;
  private readProperties: ((person: Person) => PropertyState) | undefined;

  /**
   * @param stored values before the batch, or of the new person
   * @param readBag reads the stored properties on first use
   */
  constructor(
    stored: Readonly<StoredPerson>,
    public isNew: boolean,
    readBag: (person: Person) => PropertyState,
  ) {
    const { isMainAlias, createdMicros } = stored;
    this.stored = { isMainAlias, createdMicros, searchText: null, characters: 0 };
    this.rowId = stored.rowId;
    this.projectId = stored.projectId;
    this.uuid = stored.uuid;
    this.mainDistinctId = stored.mainDistinctId;
    this.isMainAlias = stored.isMainAlias;
    this.joinedCount = stored.joinedCount;
    this.isIdentified = stored.isIdentified;
    this.createdMicros = stored.createdMicros;
    this.version = stored.version;
    this.isDirty = isNew;
    this.isVisiblyChanged = isNew;
    this.readProperties = readBag;
  }

  get bag(): PropertyState {
    if (this.openedBag === undefined) {
      this.openedBag = this.readProperties!(this);
      // Free the row that it references.
      this.readProperties = undefined;
    }
    return this.openedBag;
  }

  markChanged(): void {
    this.isDirty = true;
    this.isVisiblyChanged = true;
  }

  /** Called when the batch is written; the next one starts. */
  settle(): void {
    this.isNew = false;
    this.isDirty = false;
    this.isVisiblyChanged = false;
    this.openedBag?.settle();
    for (const id of this.joinedNow) id.isNew = false;
    this.joinedNow = [];
  }
}

/** A distinct ID and its person. */
export interface DistinctId {
  readonly distinctId: string;
  person: Person;
  /** Order of joining within the person. */
  joined: number;
  isNew: boolean;
}

/** A new distinct ID of a person. */
export interface JoinedId {
  projectId: number;
  distinctId: string;
  /** The person that got the ID first; it may be merged into another one later. */
  personId: number;
  /** When the event was received. */
  receivedMicros: number;
  /** Number of merges of the batch before this ID. */
  foldsBefore: number;
}

/** A stored ID of a person. */
export interface StoredDistinctId {
  distinctId: string;
  joined: number;
}

export class PersonsState {
  /** Persons that the batch refers to. */
  readonly touched = new Set<Person>();
  /** Persons merged into others, in order; a new `from` is never stored. */
  folds: { from: Person; into: Person }[] = [];
  /** New distinct IDs of the batch, in order. */
  joins: JoinedId[] = [];
  /** Characters of the distinct IDs in memory. */
  idCharacters = 0;
  /** When the current event was received. */
  receivedMicros = 0;
  private readonly ids = new Map<number, Map<string, DistinctId>>();

  /**
   * @param storedIds reads the IDs that a person had before the batch; called on merges
   * @param nextRowId returns an unused row ID
   * @param anonymousIds IDs that had anonymous events before
   */
  constructor(
    private readonly storedIds: (person: Person) => readonly StoredDistinctId[],
    private readonly nextRowId: () => number,
    private readonly anonymousIds: { has(projectId: number, distinctId: string): boolean },
  ) {}

  /** Adds a distinct ID read from the store. */
  addStoredId(person: Person, stored: StoredDistinctId): DistinctId {
    const id = { ...stored, person, isNew: false };
    this.keep(id);
    return id;
  }

  find(projectId: number, distinctId: string): Person | undefined {
    return this.id(projectId, distinctId)?.person;
  }

  /** A distinct ID that has a person; the same object throughout the batch. Marks the person as touched. */
  id(projectId: number, distinctId: string): DistinctId | undefined {
    const id = this.ids.get(projectId)?.get(distinctId);
    if (id !== undefined) this.touched.add(id.person);
    return id;
  }

  /**
   * Creates a person with one distinct ID.
   * @param joiningId is merged next; it determines the UUID if only this ID had anonymous events
   */
  create(projectId: number, distinctId: string, createdMicros: number, joiningId?: string): Person {
    const isHistoryOfOther =
      joiningId !== undefined &&
      this.anonymousIds.has(projectId, joiningId) &&
      !this.anonymousIds.has(projectId, distinctId);
    const stored: StoredPerson = {
      rowId: this.nextRowId(),
      projectId,
      uuid: personUuid(projectId, isHistoryOfOther ? joiningId : distinctId),
      mainDistinctId: distinctId,
      isMainAlias: false,
      joinedCount: 0,
      isIdentified: false,
      createdMicros,
      version: 0,
    };
    const person = new Person(stored, true, () => new PropertyState());
    this.touched.add(person);
    this.attach(person, distinctId);
    return person;
  }

  /** Adds a new distinct ID to a person. */
  attach(person: Person, distinctId: string): void {
    const id = { distinctId, person, joined: person.joinedCount, isNew: true };
    const { projectId, rowId: personId } = person;
    const { receivedMicros, folds } = this;
    this.joins.push({ projectId, distinctId, personId, receivedMicros, foldsBefore: folds.length });
    person.joinedCount += 1;
    person.isDirty = true;
    person.joinedNow.push(id);
    this.keep(id);
  }

  /** Moves all IDs of a person to another one, main ID first, and marks the person as merged. */
  fold(from: Person, into: Person): void {
    for (const id of this.allIds(from)) {
      id.person = into;
      id.joined = into.joinedCount;
      into.joinedCount += 1;
      into.joinedNow.push(id);
    }
    from.isFolded = true;
    into.isDirty = true;
    this.folds.push({ from, into });
  }

  /** IDs whose row is new or changed in this batch. */
  changedIds(): DistinctId[] {
    return [...this.touched].flatMap(({ isFolded, joinedNow }) => (isFolded ? [] : joinedNow));
  }

  /** Called when the batch is written; the next one starts. */
  settle(): void {
    for (const person of this.touched) person.settle();
    this.touched.clear();
    this.folds = [];
    this.joins = [];
  }

  /** Number of distinct IDs in memory. */
  get idCount(): number {
    return [...this.ids.values()].reduce((sum, { size }) => sum + size, 0);
  }

  private keep(id: DistinctId): void {
    this.idsOf(id.person.projectId).set(id.distinctId, id);
    this.idCharacters += id.distinctId.length;
  }

  private allIds(person: Person): DistinctId[] {
    const ids = this.idsOf(person.projectId);
    const stored = (person.isNew ? [] : this.storedIds(person)).map(
      (id) => ids.get(id.distinctId) ?? this.addStoredId(person, id),
    );
    const all = [...stored.sort((a, b) => a.joined - b.joined), ...person.joinedNow];
    const main = all.findIndex((id) => id.distinctId === person.mainDistinctId);
    return [...all.splice(main, 1), ...all];
  }

  private idsOf(projectId: number): Map<string, DistinctId> {
    let ids = this.ids.get(projectId);
    if (ids === undefined) {
      ids = new Map();
      this.ids.set(projectId, ids);
    }
    return ids;
  }
}
