/** Journal entries skipped because their segment was corrupt, as recorded by the quarantine. */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Lane, lanes } from "./segment.ts";

/** A range of which at least one entry could not be read. */
export interface SkippedEntries {
  lane: Lane;
  first_seq: number;
  last_seq: number;
  /** The quarantined segment. */
  file: string;
}

/** The ranges in a quarantine folder, by file name; operators remove a file when it is handled. */
export function skippedEntries(quarantine: string): SkippedEntries[] {
  const names = existsSync(quarantine) ? readdirSync(quarantine).sort() : [];
  return names.flatMap((name) => {
    const match = /^(\w+)-\d+\.ndjson\.lost-(\d+)-(\d+)\.damaged$/.exec(name);
    const lane = lanes.find((lane) => lane === match?.[1]);
    if (match === null || lane === undefined) return [];
    return [{ lane, first_seq: Number(match[2]), last_seq: Number(match[3]), file: join(quarantine, name) }];
  });
}

/** A sentence for operators. */
export function describeSkipped({ lane, first_seq, last_seq, file }: SkippedEntries): string {
  return `Corrupt ${lane} journal entries between ${first_seq} and ${last_seq} were skipped; the rest of the segment is ${file}.`;
}
