/** The flags of a project as lines of JSON under the names of the API; secret payloads are hidden. */

import { storedFlag } from "../flags/exchange/project-content.ts";
import { readFlags } from "../metadata/flag.ts";
import type { Reading } from "../metadata/metadata.ts";

export function flagLines(db: Reading, projectId: number): string[] {
  return readFlags(db, projectId).map((flag) => {
    const { id, key, fields } = storedFlag(flag);
    return JSON.stringify({ id, key, ...fields });
  });
}
