/** The outcome of one event of a request. */

import type { CanonicalEvent } from "../journal/entry.ts";

/**
 * Stable names of warnings. The first group is PostHog's (contract: ingestion 17), the second is Flagkeep's.
 *
 * `event_not_stored` marks kinds of events that the server does not store at all.
 */
export type WarningType =
  | "client_ingestion_warning"
  | "event_timestamp_in_future"
  | "ignored_invalid_timestamp"
  | "invalid_event_when_process_person_profile_is_false"
  | "invalid_process_person_profile"
  | OwnWarningType;

type OwnWarningType =
  | "create_alias_without_alias"
  | "event_not_stored"
  | "groupidentify_without_group"
  | "guessed_timestamp"
  | "historical_event_without_timestamp"
  | "invalid_group_set"
  | "invalid_groups"
  | "invalid_offset"
  | "invalid_set"
  | "invalid_unset"
  | "invalid_uuid"
  | "merge_without_alias"
  | "missing_distinct_id"
  | "missing_event_name"
  | "screen_without_name"
  | "survey_without_id"
  | "timestamp_in_properties";

/** Something about an event that its sender should know. */
export interface Warning {
  readonly type: WarningType;
  /** Human-readable facts, bounded in length, with the names of PostHog's warnings. */
  readonly details: Readonly<Record<string, string | number>>;
}

/** A stored event, a dropped event, or a message that is only a warning. */
export type Outcome =
  | { readonly kind: "event"; readonly event: CanonicalEvent; readonly warnings: readonly Warning[] }
  | { readonly kind: "dropped"; readonly reason: Warning }
  | { readonly kind: "notice"; readonly warning: Warning };

const detailLengthMax = 400;

/** A warning whose strings are truncated and sanitized; undefined facts are omitted. */
export function warning(type: WarningType, facts: Record<string, string | undefined>): Warning {
  const details: Record<string, string> = {};
  for (const [name, fact] of Object.entries(facts)) if (fact !== undefined) details[name] = fit(fact);
  return { type, details };
}

function fit(text: string): string {
  return text.slice(0, detailLengthMax).toWellFormed().replaceAll("\0", "\ufffd");
}
