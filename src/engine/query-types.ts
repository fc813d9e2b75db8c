/** The queries that the front may ask the engine: name, request, answer. */

import type { EventFilter, EventPosition } from "../events/list.ts";
import type { TrendsRequest } from "../events/trends.ts";
import type { ExportedFile, ExportRequest } from "../export/export-file.ts";
import type { CohortDefinition, FlagDefinition, GroupType } from "../flags/definition/types.ts";
import type { JsonObject } from "../flags/json.ts";
import type { Lane } from "../journal/segment.ts";
import type { Person } from "../people/person.ts";
import type { QueryRequest, QueryResult } from "../query/run-query.ts";

/** Header of an answer to `events`: the position behind which the next page starts, as JSON. */
export const nextPositionHeader = "x-next-position";

/** Status of an answer that says what is wrong with the request: `{code, message}`. */
export const refusedStatus = 422;

/** Property filters joined by AND, and what they refer to. */
export interface ConditionRequest {
  projectId: number;
  filters: JsonObject[];
  /** All cohorts of the project. */
  cohorts: CohortDefinition[];
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
}

export interface Count {
  affected: number;
  total: number;
  /** Why the condition can not be evaluated. */
  problem?: string;
}

export interface FillByFlagRequest {
  projectId: number;
  cohortId: number;
  flagKey: string;
  flags: FlagDefinition[];
  cohorts: CohortDefinition[];
  groupTypes: GroupType[];
  timezone: string;
  now: number;
}

export interface Queries {
  /** `text` is a JSON array. */
  events: { request: EventFilter; answer: { text: string; next: EventPosition | undefined } };
  trends: { request: TrendsRequest; answer: JsonObject[] };
  countPersons: { request: ConditionRequest; answer: Count };
  countGroups: { request: ConditionRequest & { groupTypeIndex: number }; answer: Count };
  findPersons: { request: ConditionRequest & { afterId?: number; limit: number }; answer: Person[] };
  /** Answers how many persons the flag is on for. */
  fillCohortByFlag: { request: FillByFlagRequest; answer: number };
  /** Answers how many members the cohort has now. */
  addCohortMembers: {
    request: { projectId: number; cohortId: number; distinctIds: string[] };
    answer: number;
  };
  /** Answers how many overrides were stored. */
  addHashKeyOverrides: {
    request: { projectId: number; distinctIds: string[]; flagKeys: string[]; hashKey: string };
    answer: number;
  };
  /** An operator's SELECT. */
  query: { request: QueryRequest; answer: QueryResult };
  /** Answers where the file is; it belongs to the asker then. */
  exportFile: { request: ExportRequest; answer: ExportedFile };
  /** Answers how many of these uuids are stored. */
  countKnown: { request: { projectId: number; uuids: string[] }; answer: number };
  /** Answers up to which sequence number each lane can be read. */
  loadedSeqs: { request: Record<string, never>; answer: Record<Lane, number> };
  /**
   * Lets DuckDB write its file no more for so long, because it is copied; 0 ends that.
   *
   * @param checkpointFirst writes it once before, if no other writer is busy.
   */
  holdCheckpoints: { request: { ms: number; checkpointFirst?: boolean }; answer: null };
}
