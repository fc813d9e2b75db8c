/** Refuses files that cannot become events, with what they are instead (contract, import 1.9). */

import { getTable } from "./files.ts";
import { type FieldRule, withFields } from "./map/fields.ts";
import type { detectFormat } from "./map/formats.ts";
import { detectLookup, lookupAlone } from "./map/lookups.ts";
import { describeUnrecognized } from "./map/unrecognized.ts";
import type { Content } from "./read/archive-contents.ts";
import { TotalsError, UnreadableFileError, UnrecognizedFormatError } from "./read/input.ts";
import type { ReadRecord } from "./read/record.ts";

interface Recognized {
  content: Pick<Content, "name" | "archive">;
  fields: readonly FieldRule[];
  /** On disk, or `-`. */
  path: string;
}

/**
 * @param found   the detected format.
 * @param samples the first records.
 * @throws {UnreadableFileError}
 */
export function assertEvents(
  { content, fields, path }: Recognized,
  found: ReturnType<typeof detectFormat>,
  samples: readonly ReadRecord[],
): void {
  const name = content.name === "-" ? "Standard input" : content.name;
  if (found === "totals")
    throw new TotalsError(`${name} holds totals per day, no events: it cannot be loaded.`);
  const sent = samples.find(({ record }) => record !== undefined)?.record;
  // Without a record each of the first lines is rejected with its own reason.
  if (sent === undefined) return;
  // In files and archives the first pass has found the lookup files.
  const isUnseen = path === "-" && content.archive === undefined;
  const lookup = isUnseen ? detectLookup(sent, getTable(content.name), "auto") : undefined;
  if (lookup !== undefined) throw new UnreadableFileError(lookupAlone(name, lookup));
  if (found === undefined)
    throw new UnrecognizedFormatError(
      describeUnrecognized(name, fields.length === 0 ? sent : withFields(sent, fields)),
    );
}
