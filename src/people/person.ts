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

/** A person whose properties are still JSON text: for passing on many without taking them apart. */
export type PersonText = Omit<Person, "properties"> & { propertiesText: string };

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
  for (const name of nameProperties) {
    const value = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (typeof value === "string" && value !== "") return value;
  }
  return mainDistinctId;
}
