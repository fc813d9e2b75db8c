/** Persons in API responses. */

import type { Person } from "../lib/api-types.ts";
import { lazyMessages } from "../messages/later.ts";

const w = lazyMessages.people;

export type { Person };

/** A person's state of identification; undefined where properties say more. */
export function getIdentity({ is_identified: isIdentified, properties }: Person): string | undefined {
  if (isIdentified) return w.identified;
  return Object.keys(properties).some((key) => !key.startsWith("$")) ? undefined : w.anonymous;
}
