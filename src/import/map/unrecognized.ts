/** Says of which formats a file is almost, and what its records lack (contract, import 1.9). Pure. */

import type { JsonObject } from "../../lib/json.ts";
import { type NearFormat, nearestFormats } from "./formats.ts";

const formatsShown = 3;
const membersShown = 20;
const nameLengthMax = 60;

/** @param record the first one, as `--map` has changed it. */
export function describeUnrecognized(name: string, record: JsonObject): string {
  const members = Object.keys(record);
  const listed = members.slice(0, membersShown).map(shortened).join(", ");
  const more = members.length > membersShown ? ` and ${members.length - membersShown} more` : "";
  const has = members.length === 0 ? "has no members" : `has the members ${listed}${more}`;
  const near = nearestFormats(record, formatsShown).map(
    ({ format, lacks }) => `${format} (lacks ${lacks.map(getNames).join(", ")})`,
  );
  return `${name} was not recognized: its first record ${has}. Nearest formats: ${near.join("; ")}.`;
}

function getNames(group: NearFormat["lacks"][number]): string {
  return typeof group === "string" ? group : group.join(" or ");
}

function shortened(name: string): string {
  return name.length <= nameLengthMax ? name : `${name.slice(0, nameLengthMax).toWellFormed()}…`;
}
