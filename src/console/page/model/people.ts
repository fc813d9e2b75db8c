/** Persons in API responses. */

import { laterWords } from "../messages/later.ts";

const w = laterWords.people;

export interface Person {
  uuid: string;
  name: string;
  distinct_ids: string[];
  properties: Record<string, unknown>;
  is_identified: boolean;
  created_at: string;
}

/** A person's state of identification; undefined where properties say more. */
export function getIdentity({ is_identified: isIdentified, properties }: Person): string | undefined {
  if (isIdentified) return w.identified;
  return Object.keys(properties).some((key) => !key.startsWith("$")) ? undefined : w.anonymous;
}
