/** Properties with a column regardless of their use: those of web analytics, and of running experiments. */

import { webProperties } from "../events/web/property-columns.ts";
import type { PersonsDb } from "../persons/open.ts";

/** Maximum number of properties of experiments; further ones get a column only by their use. */
const experimentPropertiesMax = 50;

let ofExperiments: readonly string[] = [];

/** Replaces the properties of experiments; the server process sends them again after a restart of the engine. */
export function pinExperimentProperties(names: readonly string[]): void {
  ofExperiments = names.slice(0, experimentPropertiesMax);
}

export const pinnedProperties = (people: PersonsDb): string[] => [
  ...new Set([...webProperties(people), ...ofExperiments]),
];
