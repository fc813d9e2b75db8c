/** Refuses files that cannot become events, with what they are instead (contract, import 1.9). */

import { type FieldRule, withFields } from "./map/fields.ts";
import type { detectFormat } from "./map/formats.ts";
import { describeUnrecognized } from "./map/unrecognized.ts";
import type { Content } from "./read/archive-contents.ts";
import { TotalsError, UnrecognizedFormatError } from "./read/input.ts";
import type { ReadRecord } from "./read/record.ts";

interface Recognized {
  content: Pick<Content, "name">;
  fields: readonly FieldRule[];
}

/**
 * @param found   the detected format.
 * @param samples the first records.
 * @throws {UnreadableFileError}
 */
export function assertEvents(
  { content: { name }, fields }: Recognized,
  found: ReturnType<typeof detectFormat>,
  samples: readonly ReadRecord[],
): void {
  if (found === "totals")
    throw new TotalsError(`${name} holds totals per day, no events: it cannot be loaded.`);
  const sent = samples.find(({ record }) => record !== undefined)?.record;
  // Without a record each of the first lines is rejected with its own reason.
  if (sent === undefined) return;
  if (found === undefined)
    throw new UnrecognizedFormatError(
      describeUnrecognized(name, fields.length === 0 ? sent : withFields(sent, fields)),
    );
}
