/** Result of the last scrub: a file in the data directory, for `status` and the metrics. */

import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { replaceFile } from "../../journal/disk.ts";
import { DateTime, NonNegativeInt, strictObject } from "../../lib/schema.ts";
import { paths } from "../../paths.ts";

/** In the order in which they are read. */
export const partNames = ["metadata", "people", "journal", "archive", "events"] as const;

/** Result for one store. */
const ScrubbedPart = strictObject({
  part: Type.Union(partNames.map((name) => Type.Literal(name))),
  bytes: NonNegativeInt,
  /** One sentence per corruption found. */
  damage: Type.Array(Type.String()),
});
export type ScrubbedPart = Static<typeof ScrubbedPart>;

/** Result of a scrub, as `scrub --json` prints it and `status` shows it. */
export const Scrub = strictObject({
  ok: Type.Boolean(),
  at: DateTime,
  ms: NonNegativeInt,
  bytes: NonNegativeInt,
  parts: Type.Array(ScrubbedPart),
});
export type Scrub = Static<typeof Scrub>;

/** Result of the last scrub; null before the first. */
export function readLastScrub(dataDir: string): Scrub | null {
  try {
    return JSON.parse(readFileSync(paths(dataDir).lastScrub, "utf8")) as Scrub;
  } catch {
    return null;
  }
}

/** Replaces the last result atomically. */
export async function recordScrub(dataDir: string, found: Scrub): Promise<void> {
  await replaceFile(paths(dataDir).lastScrub, `${JSON.stringify(found)}\n`);
}
