/**
 * The persons that a batch of events touches, in memory: filled from the store before the batch, changed by
 * `person-rules.ts`, written back after it. They may stay for the next batch, which often touches the same ones.
 */

import { personUuid } from "./distinct-ids.ts";
import { PropertyBag } from "./property-bag.ts";

/** What the store knows of a person. */
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

/** What of a person's row decides which of its columns are written. */
export interface StoredRow extends Pick<StoredPerson, "isMainAlias" | "createdMicros"> {
  /** Null where there is none, and as long as the properties were not read. */
  searchText: string | null;
  /** Of the properties; 0 as long as they were not read. */
  characters: number;
}

/** One person, as it becomes during a batch; changing a field that can be seen goes through `markChanged`. */
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
  /** Something that readers see is another than before the batch. */
  isVisiblyChanged: boolean;
  isFolded = false;
  /** Ids that joined during the batch, in order. */
  joinedNow: DistinctId[] = [];
  /** As the store has it. */
  stored: Readonly<StoredRow>;
  private openedBag: PropertyBag | undefined;
  private readBag: ((person: Person) => PropertyBag) | undefined;

  /**
   * @param stored  as it was before the batch, or as it is made.
   * @param readBag the properties as stored; called when they are first needed.
   */
  constructor(
    stored: Readonly<StoredPerson>,
    public isNew: boolean,
    readBag: (person: Person) => PropertyBag,
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
    this.readBag = readBag;
  }

  get bag(): PropertyBag {
    if (this.openedBag === undefined) {
      this.openedBag = this.readBag!(this);
      // It holds the row.
      this.readBag = undefined;
    }
    return this.openedBag;
  }

  markChanged(): void {
    this.isDirty = true;
    this.isVisiblyChanged = true;
  }

  /** The batch is written, and the next one begins. */
  settle(): void {
    this.isNew = false;
    this.isDirty = false;
    this.isVisiblyChanged = false;
    this.openedBag?.settle();
    for (const id of this.joinedNow) id.isNew = false;
    this.joinedNow = [];
  }
}

/** One distinct id and whose it is. */
export interface DistinctId {
  readonly distinctId: string;
  person: Person;
  /** Order of joining within the person. */
  joined: number;
  isNew: boolean;
}

/** A distinct ID that a person got, which nobody had before. */
export interface JoinedId {
  projectId: number;
  distinctId: string;
  /** The person that got it first; it may be folded later. */
  personId: number;
  /** When the event was received. */
  receivedMicros: number;
  /** How many folds of the batch came before. */
  foldsBefore: number;
}

/** A stored id of a person. */
export interface StoredDistinctId {
  distinctId: string;
  joined: number;
}

export class PeopleState {
  /** Those that the batch has to do with. */
  readonly touched = new Set<Person>();
  /** Persons that were folded, in order; `from` may be new and then never reaches the store. */
  folds: { from: Person; into: Person }[] = [];
  /** IDs that nobody had before the batch, in order. */
  joins: JoinedId[] = [];
  /** Characters of the distinct ids that are here. */
  idCharacters = 0;
  /** When the event that is applied was received. */
  receivedMicros = 0;
  private readonly ids = new Map<number, Map<string, DistinctId>>();

  /**
   * @param storedIds the ids that a person had before the batch; asked for when it is folded.
   * @param nextRowId a row number that no person has or had.
   * @param personless the ids that had personless events before.
   */
  constructor(
    private readonly storedIds: (person: Person) => readonly StoredDistinctId[],
    private readonly nextRowId: () => number,
    private readonly personless: { has(projectId: number, distinctId: string): boolean },
  ) {}

  /** Says whose id the store has under `distinctId`. */
  addStoredId(person: Person, stored: StoredDistinctId): DistinctId {
    const id = { ...stored, person, isNew: false };
    this.keep(id);
    return id;
  }

  find(projectId: number, distinctId: string): Person | undefined {
    return this.id(projectId, distinctId)?.person;
  }

  /** A distinct id that somebody has, whom the batch has to do with; the same object for as long as the batch lasts. */
  id(projectId: number, distinctId: string): DistinctId | undefined {
    const id = this.ids.get(projectId)?.get(distinctId);
    if (id !== undefined) this.touched.add(id.person);
    return id;
  }

  /**
   * Makes a person that holds `distinctId` only.
   *
   * @param joiningId the id that joins it at once; it gives the uuid when only it had personless events.
   */
  create(projectId: number, distinctId: string, createdMicros: number, joiningId?: string): Person {
    const isHistoryOfOther =
      joiningId !== undefined &&
      this.personless.has(projectId, joiningId) &&
      !this.personless.has(projectId, distinctId);
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
    const person = new Person(stored, true, () => new PropertyBag());
    this.touched.add(person);
    this.attach(person, distinctId);
    return person;
  }

  /** Adds an id that nobody has to a person. */
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

  /** Moves all ids of a person to another one, main id first, and marks it as gone. */
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

  /** All ids whose row is new or another than before the batch. */
  changedIds(): DistinctId[] {
    return [...this.touched].flatMap(({ isFolded, joinedNow }) => (isFolded ? [] : joinedNow));
  }

  /** The batch is written, and the next one begins. */
  settle(): void {
    for (const person of this.touched) person.settle();
    this.touched.clear();
    this.folds = [];
    this.joins = [];
  }

  /** How many distinct ids are here. */
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
