/** An ingestion warning: client data that was changed, ignored or rejected. */

import type { JournalEvent } from "../../journal/entry.ts";

export interface Warning {
  projectId: number;
  /** Stable name, e.g. `cannot_merge_already_identified`. */
  type: string;
  /** Helps to identify the client; warnings are grouped by `distinctId`, if present. */
  details: Record<string, unknown>;
  receivedMicros: number;
  /** Number of events covered; default: 1. */
  count?: number;
}

const shownLengthMax = 400;

/** A string as shown in warnings, possibly truncated. */
export function truncatedString(text: string): string {
  return text.length <= shownLengthMax ? text : `${text.slice(0, shownLengthMax).toWellFormed()}…`;
}

/** A warning about an event. */
export function ingestionWarning(
  event: JournalEvent,
  type: string,
  details: Record<string, unknown>,
): Warning {
  const { projectId, receivedMicros, distinctId, uuid } = event;
  return {
    projectId,
    receivedMicros,
    type,
    details: { ...details, distinctId: truncatedString(distinctId), eventUuid: uuid },
  };
}
