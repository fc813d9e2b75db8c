/** A person as readers see it. */

export interface Person {
  /** Row ID. */
  id: number;
  projectId: number;
  uuid: string;
  /** The distinct ID that is listed first. */
  mainDistinctId: string;
  /** Whether the person was identified by merging distinct IDs. */
  isIdentified: boolean;
  createdMicros: number;
  version: number;
  properties: Record<string, unknown>;
}

/** A person with serialized properties, for passing on many without parsing them. */
export interface PersonJson extends Omit<Person, "properties"> {
  /** JSON, computed on access. */
  readonly propertiesText: string;
  /** The row's encoding, see `property-key-sets.ts`: equal for equal properties of a person. */
  readonly storedProperties: string;
  /** The properties as JSON, and some of their values; undefined if absent. */
  propertiesWith(names: readonly string[]): { json: string; values: unknown[] };
}

/** Maximum bytes of properties per page of persons, each of which can have 0.5 MB. */
export const pageBytesMax = 16 * 1024 * 1024;

/** How many of the first persons fit in a page; at least one. @param sizes bytes of each person's properties */
export function fittingCount(sizes: readonly number[]): number {
  let bytes = 0;
  let count = 0;
  for (const size of sizes) {
    bytes += size;
    if (bytes > pageBytesMax) return Math.max(count, 1);
    count += 1;
  }
  return count;
}

/** Properties with a person's name, best first; the ones that searches use. */
export const nameProperties = [
  "email",
  "Email",
  "$email",
  "name",
  "Name",
  "username",
  "Username",
  "UserName",
];

/** The name shown in lists: the first name property, otherwise the main distinct ID. */
export function displayName({
  properties,
  mainDistinctId,
}: Pick<Person, "properties" | "mainDistinctId">): string {
  const values = nameProperties.map((name) =>
    Object.hasOwn(properties, name) ? properties[name] : undefined,
  );
  return nameAmong(values) ?? mainDistinctId;
}

/** @param values of `nameProperties` @returns undefined if none is a usable name */
export function nameAmong(values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === "string" && value !== "");
}
