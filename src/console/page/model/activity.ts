/** Formats entries of the activity log. */

import { formatValue } from "../lib/format.ts";
import { words } from "../messages/index.ts";
import { filterDifferences } from "./draft.ts";
import { type Filters, type ShortUser, userName } from "./flags.ts";

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
    /** The actor in place of a user. */
    trigger?: { job_type: string; job_id: string; proposed_by?: ShortUser | null } | null;
  };
  created_at: string;
}

const lineLengthMax = 160;

/** Fields that the server derives from others. */
const derivedFields: ReadonlySet<string> = new Set([
  ...["version", "performed_rollback", "last_modified_by", "updated_at", "usage_dashboard"],
  ...["is_calculating", "last_calculation", "errors_calculating", "count"],
]);

/** One line per change of an entry. */
export function changeLines(entry: ActivityEntry): string[] {
  const { changes } = entry.detail;
  return changes
    .filter(({ field }) => !derivedFields.has(field))
    .flatMap(({ field, before, after }) => {
      if (entry.scope === "FeatureFlag" && field === "filters" && isObject(before) && isObject(after)) {
        return filterDifferences(before as Filters, after as Filters);
      }
      if (field === "active") return [after === true ? w.switchedOn : w.switchedOff];
      return [w.field(field, short(before), short(after))];
    });
}

/** The actor: a user, an actor in place of one, or the server itself. */
export function getActorName({ user, detail: { trigger } }: ActivityEntry): string {
  const acted = trigger && w.triggers[trigger.job_type]?.(trigger.job_id);
  return acted || (!user.is_system && (user.first_name || user.email)) || w.server;
}

/** Requester and approver of a change; undefined for other entries. */
export function getApproval(entry: ActivityEntry): string | undefined {
  const { trigger } = entry.detail;
  if (trigger?.job_type !== "change_request") return undefined;
  return w.approval(userName(trigger.proposed_by ?? null), getActorName(entry));
}

function short(value: unknown): string {
  const text = value === null || value === undefined || value === "" ? words.frame.none : formatValue(value);
  return text.length > lineLengthMax ? `${text.slice(0, lineLengthMax)}…` : text;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
