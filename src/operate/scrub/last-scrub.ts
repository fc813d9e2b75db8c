/** What a scrub found: remembered in a file of the data directory, which `status` and the metrics show. */

import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import { replaceFile } from "../../journal/disk.ts";
import { Count, exactly, Instant } from "../../lib/schema.ts";
import { paths } from "../../paths.ts";

/** In the order in which they are read. */
export const partNames = ["metadata", "people", "journal", "archive", "events"] as const;

/** What one store gave. */
const ScrubbedPart = exactly({
  part: Type.Union(partNames.map((name) => Type.Literal(name))),
  bytes: Count,
  /** One sentence for each damage that was found. */
  damage: Type.Array(Type.String()),
});
export type ScrubbedPart = Static<typeof ScrubbedPart>;

/** What a scrub found; as `scrub --json` prints it and `status` shows it. */
export const Scrub = exactly({
  ok: Type.Boolean(),
  at: Instant,
  ms: Count,
  bytes: Count,
  parts: Type.Array(ScrubbedPart),
});
export type Scrub = Static<typeof Scrub>;

/** What the last scrub found; null when there was none. */
export function readLastScrub(dataDir: string): Scrub | null {
  try {
    return JSON.parse(readFileSync(paths(dataDir).lastScrub, "utf8")) as Scrub;
  } catch {
    return null;
  }
}

/** Puts it in the place of the last one, whole or not at all. */
export async function noteScrub(dataDir: string, found: Scrub): Promise<void> {
  await replaceFile(paths(dataDir).lastScrub, `${JSON.stringify(found)}\n`);
}
