/** An ingestion warning: something a client sent that was changed, ignored or refused. */

import type { JournalEvent } from "../../journal/entry.ts";

export interface Warning {
  projectId: number;
  /** Stable name, e.g. `cannot_merge_already_identified`. */
  type: string;
  /** What helps to find the client; `distinctId`, where present, is what warnings are told apart by. */
  details: Record<string, unknown>;
  receivedMicros: number;
  /** How many events it stands for; one when left out. */
  count?: number;
}

const shownLengthMax = 400;

/** A text as warnings show it: whole, or its beginning. */
export function shownText(text: string): string {
  return text.length <= shownLengthMax ? text : `${text.slice(0, shownLengthMax).toWellFormed()}…`;
}

/** A warning about an event. */
export function warningAbout(event: JournalEvent, type: string, details: Record<string, unknown>): Warning {
  const { projectId, receivedMicros, distinctId, uuid } = event;
  return {
    projectId,
    receivedMicros,
    type,
    details: { ...details, distinctId: shownText(distinctId), eventUuid: uuid },
  };
}
