/** A person as readers see it. */

export interface Person {
  /** Number within the installation. */
  id: number;
  projectId: number;
  uuid: string;
  /** The id that is listed first. */
  mainDistinctId: string;
  /** The person was joined from several ids. */
  isIdentified: boolean;
  createdMicros: number;
  version: number;
  properties: Record<string, unknown>;
}

/** A person whose properties are still text: for passing on many without taking them apart. */
export interface PersonText extends Omit<Person, "properties"> {
  /** JSON; put together when it is asked for. */
  readonly propertiesText: string;
  /** As the row has them, for `property-lists.ts`: equal for equal properties of a person. */
  readonly storedProperties: string;
}

/** Of the properties of one page of persons, who may have half a megabyte each. */
export const pageBytesMax = 16 * 1024 * 1024;

/** How many of the first persons fit into one page; one always does. @param sizes bytes of each one's properties */
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

/** Properties that tell a person's name, best first; the ones a search looks at. */
export const nameProperties = [
  ...["email", "Email", "$email"],
  ...["name", "Name", "username", "Username", "UserName"],
];

/** What a person is called in lists: a telling property, else the main distinct id. */
export function displayName({
  properties,
  mainDistinctId,
}: Pick<Person, "properties" | "mainDistinctId">): string {
  const values = nameProperties.map((name) =>
    Object.hasOwn(properties, name) ? properties[name] : undefined,
  );
  return nameAmong(values) ?? mainDistinctId;
}

/** @param values of `nameProperties`. @returns undefined when none of them tells a name */
export function nameAmong(values: readonly unknown[]): string | undefined {
  return values.find((value): value is string => typeof value === "string" && value !== "");
}
