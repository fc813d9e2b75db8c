/** Formats entries of the activity log. */

import { formatValue } from "../lib/format.ts";
import { messages } from "../messages/index.ts";
import { describeFilters, filterDifferences } from "./filter-differences.ts";
import { type Filters, type ShortUser, userName } from "./flags.ts";

const w = messages.activity;

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
  "version",
  "performed_rollback",
  "last_modified_by",
  "updated_at",
  "usage_dashboard",
  "is_calculating",
  "last_calculation",
  "errors_calculating",
  "count",
]);

/** Actions that say what happened to the whole object. */
const wholeActions: ReadonlySet<string> = new Set(["created", "deleted", "restored"]);

const shownChanges = ({ activity, detail: { changes } }: ActivityEntry) =>
  changes.filter(
    ({ field }) => !derivedFields.has(field) && !(field === "deleted" && wholeActions.has(activity)),
  );

/** An entry in a few words: "restored", "turned on", "rollout 25 → 100%". */
export function summarizeEntry(entry: ActivityEntry): string {
  const { verb, lines } = getSentence(entry);
  return wholeActions.has(entry.activity) ? verb : (lines[0] ?? verb);
}

/** The action as a verb, and the changes that the verb does not express, one line each. */
export function getSentence(entry: ActivityEntry): { verb: string; isSwitch: boolean; lines: string[] } {
  const changes = shownChanges(entry);
  const [first] = changes;
  if (entry.activity === "updated" && changes.length === 1 && first?.field === "active") {
    return { verb: first.after === true ? w.switchedOn : w.switchedOff, isSwitch: true, lines: [] };
  }
  return {
    verb: w.verbs[entry.activity] ?? entry.activity.replaceAll("_", " "),
    isSwitch: entry.activity === "activated" || entry.activity === "deactivated",
    lines: changeLines(entry),
  };
}

const collapsedWithinMs = 10 * 60_000;

/** Consecutive entries with the same text for different items, within ten minutes of the newest. */
export function collapseEntries(entries: readonly ActivityEntry[]): ActivityEntry[][] {
  const groups: ActivityEntry[][] = [];
  let key: string | undefined;
  for (const entry of entries) {
    const { verb, lines } = getSentence(entry);
    const { note = "", trigger } = entry.detail;
    const itsKey = JSON.stringify([
      getActorName(entry),
      verb,
      entry.scope,
      note,
      trigger?.job_id,
      // What an item began with does not matter.
      entry.activity === "created" ? [] : lines,
    ]);
    const group = groups.at(-1);
    const isNear =
      group !== undefined &&
      new Date(group[0]!.created_at).getTime() - new Date(entry.created_at).getTime() <= collapsedWithinMs;
    if (isNear && itsKey === key) group.push(entry);
    else groups.push([entry]);
    key = itsKey;
  }
  return groups;
}

/** The fields of a change before and after, each as lines of text. */
export function sideBySide(entry: ActivityEntry): { field: string; before: string[]; after: string[] }[] {
  return shownChanges(entry).map(({ field, before, after }) => {
    const isFilters = entry.scope === "FeatureFlag" && field === "filters";
    const lines = (value: unknown) =>
      isFilters && isObject(value) ? describeFilters(value as Filters) : jsonLines(value);
    return {
      field: isFilters ? messages.flag.tabs.release : w.fieldName(field),
      before: lines(before),
      after: lines(after),
    };
  });
}

function jsonLines(value: unknown): string[] {
  if (value === null || value === undefined || value === "") return [];
  if (typeof value === "string") return value.split("\n");
  return JSON.stringify(value, null, 2).split("\n");
}

/** One line per change of an entry. */
export function changeLines(entry: ActivityEntry): string[] {
  return shownChanges(entry).flatMap(({ field, before, after }) => {
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
  const text =
    value === null || value === undefined || value === "" ? messages.frame.none : formatValue(value);
  return text.length > lineLengthMax ? `${text.slice(0, lineLengthMax)}…` : text;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
