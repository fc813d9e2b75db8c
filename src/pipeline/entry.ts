/** What the lines of a journal segment say; the ingestion room writes them (`ingestion/`), the pipeline reads them. */

import type { PipelineEvent, PipelineNote } from "../people/pipeline-items.ts";

export type Entry = (PipelineEvent & { hasMadeUuid: boolean }) | PipelineNote;

interface RawEntry {
  seq: number;
  project_id: number;
  uuid?: string;
  event: string;
  distinct_id: string;
  time: number;
  received: number;
  historical: boolean;
  mode: "full" | "propertyless";
  made_uuid: boolean;
  properties: Record<string, unknown>;
  note?: "warning" | "drop";
  type: string;
  details: Record<string, unknown>;
}

/** @throws {SyntaxError} the line is not JSON; the journal's hashes make that impossible short of a defect. */
export function parseEntry(line: string): Entry {
  const raw = JSON.parse(line) as RawEntry;
  const common = {
    seq: raw.seq,
    projectId: raw.project_id,
    receivedMicros: raw.received,
    historical: raw.historical,
  };
  if (raw.note !== undefined) return { ...common, kind: raw.note, type: raw.type, details: raw.details };
  return {
    ...common,
    kind: "event",
    uuid: raw.uuid!,
    event: raw.event,
    distinctId: raw.distinct_id,
    timeMicros: raw.time,
    mode: raw.mode,
    hasMadeUuid: raw.made_uuid,
    properties: raw.properties,
  };
}

/** The sequence number of a line, without parsing the rest. */
export function seqOfLine(line: string): number {
  return Number.parseInt(line.slice('{"seq":'.length), 10);
}
