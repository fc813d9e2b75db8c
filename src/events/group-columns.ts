/**
 * `$group_0`, `$group_1`, …: an event's groups under the numbers of their types, beside `$groups`.
 *
 * Added where events are read: a type keeps its number for ever, and whoever stores the event does not know it yet.
 * Source: contract, ingestion 14.2; decision 6.
 */

import { groupsOf } from "../people/identity/operations.ts";

/**
 * @param properties JSON text of the stored properties; it is kept as it is, members are added at its end.
 * @param typeIndexes numbers of the project's group types by name.
 */
export function withGroupColumns(properties: string, typeIndexes: ReadonlyMap<string, number>): string {
  if (typeIndexes.size === 0 || !properties.includes('"$groups"')) return properties;
  const parsed = JSON.parse(properties) as Record<string, unknown>;
  if (parsed.$process_person_profile === false) return properties;
  let members = "";
  for (const { type, key } of groupsOf(parsed.$groups)) {
    const name = `$group_${typeIndexes.get(type)}`;
    if (!typeIndexes.has(type) || Object.hasOwn(parsed, name)) continue;
    members += `,"${name}":${JSON.stringify(key)}`;
  }
  const end = properties.lastIndexOf("}");
  return properties.slice(0, end) + members + properties.slice(end);
}
