/** Persons that a step has in memory, and that the next step can reuse. */

import type { Person, PersonsState } from "./identity/persons-state.ts";

/**
 * Above these numbers of persons, characters of properties, or distinct IDs, the next step starts with an empty cache.
 */
export const cachedPersonsMax = 30_000;
export const cachedCharactersMax = 24 * 1024 * 1024;
export const cachedIdsMax = 2 * cachedPersonsMax;

export class CachedPersons {
  private readonly persons = new Map<number, Person>();
  /** Characters of their properties. */
  private characters = 0;

  get(rowId: number): Person | undefined {
    return this.persons.get(rowId);
  }

  add(person: Person): void {
    this.persons.set(person.rowId, person);
  }

  /** Removes a person that was merged into another one. */
  remove(person: Person): void {
    this.persons.delete(person.rowId);
    this.characters -= person.stored.characters;
  }

  /** Records the values of a person's row whose properties are read. */
  recordRead(person: Person, searchText: string | null, characters: number): void {
    this.characters += characters;
    person.stored = { ...person.stored, searchText, characters };
  }

  /** Records the values of a person's written row. */
  recordWritten(person: Person, searchText: string | null, characters: number): void {
    const { isMainAlias, createdMicros } = person;
    this.characters += characters - person.stored.characters;
    person.stored = { isMainAlias, createdMicros, searchText, characters };
  }

  /** Whether they and the IDs are few enough for the next step. */
  isReusable({ idCount, idCharacters }: Pick<PersonsState, "idCount" | "idCharacters">): boolean {
    return (
      this.persons.size <= cachedPersonsMax &&
      idCount <= cachedIdsMax &&
      idCharacters <= cachedCharactersMax &&
      this.characters <= cachedCharactersMax
    );
  }
}
