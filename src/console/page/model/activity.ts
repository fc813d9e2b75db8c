/** Changes as the log keeps them, in words. */

import { valueText } from "../lib/format.ts";
import { words } from "../words/index.ts";
import { filterDifferences } from "./draft.ts";
import type { Filters } from "./flags.ts";

const w = words.activity;

export interface ActivityEntry {
  id: string;
  user: { first_name: string; email: string | null; is_system?: boolean };
  activity: string;
  scope: string;
  item_id: string;
  detail: {
    changes: { type: string; action: string; field: string; before: unknown; after: unknown }[];
    name: string | null;
    note?: string;
    /** What acted in place of a person. */
    trigger?: { job_type: string; job_id: string } | null;
  };
  created_at: string;
}

const lineLengthMax = 160;

/** Each change of an entry as one line. */
export function changeLines(entry: ActivityEntry): string[] {
  const { changes } = entry.detail;
  // Every change of a flag counts its version up.
  const told = changes.filter(({ field }) => entry.scope !== "FeatureFlag" || field !== "version");
  return (told.length > 0 ? told : changes).flatMap(({ field, before, after }) => {
    if (entry.scope === "FeatureFlag" && field === "filters" && isObject(before) && isObject(after)) {
      return filterDifferences(before as Filters, after as Filters);
    }
    if (field === "active") return [after === true ? w.switchedOn : w.switchedOff];
    return [w.field(field, short(before), short(after))];
  });
}

/** Who did it: a person, what acted in place of one, or the server itself. */
export function whoOf({ user, detail: { trigger } }: ActivityEntry): string {
  const acted = trigger && w.triggers[trigger.job_type]?.(trigger.job_id);
  return acted || (!user.is_system && (user.first_name || user.email)) || w.server;
}

function short(value: unknown): string {
  const text = value === null || value === undefined || value === "" ? words.frame.none : valueText(value);
  return text.length > lineLengthMax ? `${text.slice(0, lineLengthMax)}…` : text;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
