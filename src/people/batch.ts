/** What the pipeline hands to the store of persons. */

import type { JournalItem } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";

/** Events that were left out because their uuid was known; counted per project, lane and UTC day. */
export interface DuplicateCount {
  projectId: number;
  receivedMicros: number;
  historical: boolean;
  count: number;
}

/** One step of the pipeline: everything between the lane's cursor and `lastSeq`, without duplicates. */
export interface PeopleBatch {
  lane: Lane;
  /** The lane's cursor afterwards. */
  lastSeq: number;
  /** In order of `seq`; sequence numbers may be missing. */
  items: readonly JournalItem[];
  duplicates: readonly DuplicateCount[];
}
