/**
 * What a webhook sends. The body is created when it is sent: payloads that were encrypted meanwhile are already removed from the
 * activity and the change requests that it is created from.
 */

import { eq } from "drizzle-orm";
import { type ActivityEntry, type Change, findActivity } from "../../accounts/activity.ts";
import { entryBody } from "../../accounts/api/activity.ts";
import type { Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { changeRequest } from "../../accounts/schema.ts";
import type { Delivery, DeliveryEvent } from "../../accounts/webhook-outbox.ts";
import { changeRequestBody } from "../../flags/api/flag-schemas.ts";
import { findFlag, flagKeysById } from "../../flags/store/flag.ts";
import { affectedKeysFinder } from "../../flags/store/protected-flags.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { toApiTime } from "../../lib/time.ts";

/** An event as webhooks in the format `json` receive it. */
export interface WebhookContent {
  /** Id of the delivery, the same for each attempt. */
  id: string;
  event: DeliveryEvent;
  created_at: string;
  project: { id: number; name: string };
  /** One or more sentences for people. */
  text: string;
  /** Page of the console. */
  url: string;
  data: JsonObject;
}

/** Values beyond this size are left out of `data`. */
const dataBytesMax = 256 * 1024;

export interface ContentContext {
  project: { id: number; name: string };
  /** URL of the server without a trailing slash. */
  base: string;
}

type Part = Pick<WebhookContent, "text" | "data"> & { page: string };

/** @returns undefined if what it is about was deleted. */
export function readContent(
  metadata: Metadata,
  { uuid, event, subject, createdAt }: Delivery,
  { project, base }: ContentContext,
): WebhookContent | undefined {
  const part = readPart(metadata, event as DeliveryEvent, subject, project);
  if (part === undefined) return undefined;
  return {
    id: uuid,
    event: event as DeliveryEvent,
    created_at: toApiTime(createdAt),
    project,
    text: part.text,
    url: `${base}/console/${part.page}`,
    data: withinLimit(part.data),
  };
}

function withinLimit(data: JsonObject): JsonObject {
  const bytes = Buffer.byteLength(JSON.stringify(data));
  return bytes <= dataBytesMax ? data : { truncated: true, bytes };
}

function readPart(
  metadata: Metadata,
  event: DeliveryEvent,
  subject: JsonObject,
  project: ContentContext["project"],
): Part | undefined {
  switch (event) {
    case "flag_changed":
      return flagChange(metadata.db, String(subject.activity_id), project);
    case "change_request_opened":
    case "change_request_decided":
      return changeRequestPart(metadata, event, Number(subject.change_request_id), project);
    case "spike":
      return { text: spikeText(subject, project), data: subject, page: "events" };
    case "ingestion_warning":
      return {
        text: `Ingestion warning in ${project.name}: ${subject.type} (${subject.count} in the last day).`,
        data: subject,
        page: "events",
      };
    case "backup_failed":
      return { text: `A backup failed: ${subject.error}`, data: subject, page: "instance?tab=backups" };
    case "weekly_summary":
      return { text: summaryText(subject, project), data: subject, page: "" };
    case "test":
      return { text: `Test of a webhook of ${project.name}.`, data: {}, page: "settings?tab=webhooks" };
  }
}

function flagChange(db: Reading, id: string, project: ContentContext["project"]): Part | undefined {
  const entry = findActivity(db, id);
  if (entry === undefined) return undefined;
  const flag = findFlag(db, project.id, Number(entry.itemId));
  const state: JsonObject | null = flag
    ? { id: flag.id, key: flag.key, active: flag.active, deleted: flag.deleted, version: flag.version }
    : null;
  return {
    text: flagText(entry, project),
    data: { flag: state, activity: entryBody(entry) as unknown as JsonObject },
    page: `flags/${entry.itemId}`,
  };
}

const personName = (user: { firstName: string; email: string } | undefined) =>
  user === undefined ? undefined : user.firstName || user.email;

/** Actors in place of a user. */
const actorNames: ReadonlyMap<string, string> = new Map([
  ["scheduled_change", "A scheduled change"],
  ["guardrail", "A guardrail"],
  ["rollback_condition", "A rollback condition"],
  ["survey_schedule", "The schedule of a survey"],
]);

function authorName({ user, detail: { trigger } }: ActivityEntry): string {
  if (user !== undefined) return personName(user)!;
  if (trigger?.job_type === "command_line") return `${trigger.job_id} (command line)`;
  return actorNames.get(trigger?.job_type ?? "") ?? "The server";
}

function flagText(entry: ActivityEntry, { name: project }: ContentContext["project"]): string {
  const { detail, activity } = entry;
  const sentence = `${authorName(entry)} ${getVerb(activity, detail.changes)} ${detail.name} in ${project}`;
  return `${sentence}.${detail.note ? ` Reason: ${detail.note}` : ""}`;
}

/** They follow from other changes. */
const derivedFields = new Set(["version", "performed_rollback", "rollback_conditions"]);

function getVerb(activity: string, changes: readonly Change[]): string {
  if (activity !== "updated") return activity;
  const fields = changes.map(({ field }) => field).filter((field) => !derivedFields.has(field));
  const active = changes.find(({ field }) => field === "active");
  if (active !== undefined && fields.length === 1) return active.after === true ? "turned on" : "turned off";
  return fields.length === 0
    ? "updated"
    : `changed ${fields.map((field) => field.replaceAll("_", " ")).join(", ")} of`;
}

function changeRequestPart(
  metadata: Metadata,
  event: DeliveryEvent,
  id: number,
  { name: project }: ContentContext["project"],
): Part | undefined {
  const { db } = metadata;
  const request = db.select().from(changeRequest).where(eq(changeRequest.id, id)).get();
  if (request === undefined) return undefined;
  const keys = flagKeysById(db, request.projectId, request.flagId === null ? [] : [request.flagId]);
  const body = changeRequestBody(db, request, keys, affectedKeysFinder({ metadata }, request.projectId));
  const item = body.flag_key || `cohort ${body.cohort_name}`;
  const page = request.flagId === null ? `cohorts/${request.cohortId}` : `flags/${request.flagId}`;
  const getName = (user: typeof body.created_by) => user?.first_name || user?.email || "A former member";
  if (event === "change_request_opened") {
    // The request may be decided before it is reported.
    const data = { ...body, state: "pending", decided_by: null, decided_at: null };
    const reason = body.note === "" ? "" : ` Reason: ${body.note}`;
    return {
      text: `${getName(body.created_by)} proposed a change of ${item} in ${project}.${reason}`,
      data: { change_request: data as unknown as JsonObject },
      page,
    };
  }
  const verb = body.state === "applied" ? "approved" : body.state === "withdrawn" ? "withdrew" : "rejected";
  return {
    text: `${getName(body.decided_by)} ${verb} the change of ${item} in ${project} that ${getName(body.created_by)} proposed.`,
    data: { change_request: body as unknown as JsonObject },
    page,
  };
}

function spikeText({ kind, spike }: JsonObject, { name: project }: ContentContext["project"]): string {
  const { peak_per_minute: peak, usual_per_minute: baseline } = isJsonObject(spike) ? spike : {};
  const verb = kind === "began" ? "started" : "ended";
  return `A spike of events ${verb} in ${project}: up to ${peak} per minute, usually ${baseline}.`;
}

const shownNumber = (value: Json | undefined) => Number(value).toLocaleString("en-US");

const counted = (count: Json | undefined, noun: string) =>
  `${shownNumber(count)} ${noun}${count === 1 ? "" : "s"}`;

function summaryText(data: JsonObject, { name: project }: ContentContext["project"]): string {
  const { from, to, flags_changed: flags, flag_keys: keys, change_requests_pending: pending } = data;
  const compared = (name: string, noun: string) => {
    const previous = data[`${name}_previous`];
    const before = typeof previous === "number" ? ` (${shownNumber(previous)} the week before)` : "";
    return counted(data[name], noun) + before;
  };
  const figures = [
    // Absent without page views.
    ...(data.visitors === undefined
      ? []
      : [compared("visitors", "visitor"), compared("page_views", "page view")]),
    compared("events", "event"),
    `${counted(flags, "flag")} changed`,
  ];
  const named = Array.isArray(keys) && keys.length > 0 ? `: ${keys.join(", ")}` : "";
  const more = Array.isArray(keys) && keys.length > 0 && Number(flags) > keys.length ? ", …" : "";
  const waiting = pending === 0 ? "" : ` Waiting for approval: ${counted(pending, "change request")}.`;
  return `${project} from ${from} to ${to}: ${figures.join(", ")}${named}${more}.${waiting}`;
}
