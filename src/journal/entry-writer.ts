/**
 * Writes what goes into the journal: the text of one JSON object per line, without its opening `{` and without the
 * sequence number, which the journal puts in front.
 *
 * The order of the members is part of the format.
 */

import type { JournalNote, NoteKind, PersonMode } from "./entry.ts";

/** An event as everything after ingestion sees it. */
export interface CanonicalEvent {
  /** Lower case, hyphenated. */
  readonly uuid: string;
  /** The uuid was made here, so no second copy of the event can have it. */
  readonly isUuidMade: boolean;
  /** Never blank; of any length. */
  readonly name: string;
  /** Never blank; of any length. */
  readonly distinctId: string;
  /** Epoch microseconds, UTC. */
  readonly time: number;
  readonly mode: PersonMode;
  readonly elementsChain: string | null;
  /** The text of a JSON object, on one line. */
  readonly properties: string;
}

/** Writes the lines of one request. */
export class EntryWriter {
  private readonly head: string;
  private readonly request: string;
  private readonly beforeUuid: string;
  private readonly afterTime: Readonly<Record<PersonMode, { made: string; sent: string }>>;

  /** @param receivedMicros when the request arrived, epoch microseconds. */
  constructor(projectId: number, receivedMicros: number, isHistorical: boolean) {
    this.head = `"project_id":${projectId},`;
    this.request = `"received":${receivedMicros},"historical":${isHistorical},`;
    this.beforeUuid = `${this.head}"uuid":"`;
    const afterTime = (mode: PersonMode) => ({
      made: `,${this.request}"mode":"${mode}","made_uuid":true,"elements_chain":`,
      sent: `,${this.request}"mode":"${mode}","made_uuid":false,"elements_chain":`,
    });
    this.afterTime = { full: afterTime("full"), propertyless: afterTime("propertyless") };
  }

  /** The line of an event. */
  event(event: CanonicalEvent): string {
    const { uuid, name, distinctId, time, elementsChain, properties } = event;
    // The journal copies the text once more, and the number of pieces is what that costs: so they are few.
    return this.beforeUuid.concat(
      uuid,
      `","event":`,
      quoted(name),
      `,"distinct_id":`,
      quoted(distinctId),
      `,"time":`,
      String(time),
      this.afterTime[event.mode][event.isUuidMade ? "made" : "sent"],
      elementsChain === null ? "null" : JSON.stringify(elementsChain),
      `,"properties":`,
      properties,
      "}",
    );
  }

  /** The line of a warning, `drop` when its event was not stored, which the usage report counts; or of a deletion. */
  note(kind: NoteKind, { type, details }: Pick<JournalNote, "type" | "details">): string {
    return `${this.head}"note":"${kind}","type":"${type}",${this.request}"details":${JSON.stringify(details)}}`;
  }
}

const needsNoEscape = /^[ !#-[\]-~]*$/;

/** As JSON.stringify, in a third of the time for names and ids as they usually are. */
function quoted(text: string): string {
  return needsNoEscape.test(text) ? `"${text}"` : JSON.stringify(text);
}
