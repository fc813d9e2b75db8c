/** Reads the results of ingestion other than persons: definitions, warnings, usage and spikes. */

import {
  type EventDefinition,
  listEventDefinitions,
  listPropertyDefinitions,
  listPropertyValues,
  type PropertyDefinition,
} from "./event-definitions.ts";
import type { PersonsDb } from "./open.ts";
import { listSpikes } from "./spike-store.ts";
import { listUsage } from "./usage.ts";
import { type CountedWarning, countWarningsSince, listWarnings } from "./warnings.ts";

type Usage = ReturnType<typeof listUsage>;
type Spike = ReturnType<typeof listSpikes>[number];

interface Page {
  limit: number;
  offset: number;
}

/** The port for these records, like `PersonReader` for persons. */
export interface IngestionReader {
  /** Event names that contain a string, ignoring case, ordered by name; and their number. */
  eventDefinitions(
    projectId: number,
    search: string,
    page: Page,
  ): Promise<{ names: EventDefinition[]; count: number }>;
  /** Like `eventDefinitions`, for the properties of one owner. */
  propertyDefinitions(
    filter: { projectId: number; owner: string; search: string },
    page: Page,
  ): Promise<{ names: PropertyDefinition[]; count: number }>;
  /** Values of a property that contain a string, ignoring case. */
  propertyValues(filter: {
    projectId: number;
    owner: string;
    name: string;
    search: string;
  }): Promise<(string | number | boolean)[]>;
  /** Warnings of a project, last seen first. */
  warnings(
    projectId: number,
    filter: { types?: readonly string[]; limit: number },
  ): Promise<CountedWarning[]>;
  /** Count of each type since a time (rounded to the hour), per project. */
  warningCounts(sinceMicros: number): Promise<WarningCount[]>;
  /** Usage per day, oldest first, and its sum; first and last UTC day are inclusive, YYYY-MM-DD. */
  usage(projectId: number, range: { dateFrom?: string; dateTo?: string }): Promise<Usage>;
  /** Spikes of a project, newest first. */
  spikes(projectId: number, page: Page): Promise<Spike[]>;
}

/** Warnings of one type. */
export interface WarningCount {
  projectId: number;
  type: string;
  count: number;
}

/** Reads them from `people.sqlite`. */
export class SqliteIngestionReader implements IngestionReader {
  constructor(private readonly db: PersonsDb) {}

  async eventDefinitions(projectId: number, search: string, page: Page) {
    return listEventDefinitions(this.db, projectId, search, page);
  }

  async propertyDefinitions(filter: { projectId: number; owner: string; search: string }, page: Page) {
    return listPropertyDefinitions(this.db, filter, page);
  }

  async propertyValues(filter: { projectId: number; owner: string; name: string; search: string }) {
    return listPropertyValues(this.db, filter);
  }

  async warnings(projectId: number, filter: { types?: readonly string[]; limit: number }) {
    return listWarnings(this.db, projectId, filter);
  }

  async warningCounts(sinceMicros: number) {
    return countWarningsSince(this.db, sinceMicros);
  }

  async usage(projectId: number, range: { dateFrom?: string; dateTo?: string }) {
    return listUsage(this.db, projectId, range);
  }

  async spikes(projectId: number, page: Page) {
    return listSpikes(this.db, projectId, page);
  }
}
