/** What the pipeline hands to the store of persons: the lines of a journal lane, decoded, without duplicates. */

/** The two journals: `historical` holds what arrived with `historical_migration: true`. */
export type Lane = "realtime" | "historical";

/** One event, normalised. */
export interface PipelineEvent {
  kind: "event";
  /** Position in its lane, strictly increasing. */
  seq: number;
  projectId: number;
  uuid: string;
  event: string;
  distinctId: string;
  /** When it happened, epoch microseconds, UTC. */
  timeMicros: number;
  /** When Flagkeep received it, epoch microseconds, UTC. */
  receivedMicros: number;
  historical: boolean;
  /** `propertyless`: the event was sent with `$process_person_profile: false` and leaves persons and groups alone. */
  mode: "full" | "propertyless";
  properties: Record<string, unknown>;
}

/** Something ingestion wants remembered about an event it changed (`warning`) or refused (`drop`). */
export interface PipelineNote {
  kind: "warning" | "drop";
  seq: number;
  projectId: number;
  /** The warning's type, e.g. `missing_event_name`. */
  type: string;
  receivedMicros: number;
  historical: boolean;
  details: Record<string, unknown>;
}

/** How many events a note is about: of a request with very many faults, ingestion writes the last ones as one note. */
export function noteCount({ details }: PipelineNote): number {
  return typeof details.count === "number" ? details.count : 1;
}

export type PipelineItem = PipelineEvent | PipelineNote;

/** Events that were left out because their uuid was known; counted per project, lane and UTC day. */
export interface DuplicateCount {
  projectId: number;
  receivedMicros: number;
  historical: boolean;
  count: number;
}

/** One step of the pipeline: everything between the lane's cursor and `lastSeq`. */
export interface PeopleBatch {
  lane: Lane;
  /** The lane's cursor afterwards. */
  lastSeq: number;
  /** In order of `seq`; sequence numbers may be missing. */
  items: readonly PipelineItem[];
  duplicates: readonly DuplicateCount[];
}
