/**
 * Payloads that were readable before they were encrypted: where else the metadata keeps them (contract: management-api 4.5).
 *
 * SQLite overwrites the replaced pages (`secure_delete`, `accounts/db.ts`); backups and its write-ahead log may still hold them.
 */

import { and, eq } from "drizzle-orm";
import type { MetadataTx } from "../../accounts/db.ts";
import { activity, changeRequest, scheduledChange } from "../../accounts/schema.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { Flag } from "../fields.ts";
import { hidePayloads, redactedPayload } from "../rules/types.ts";

/** What the answer to the write says that turns encryption on. */
export const encryptionWarning =
  "The payload is encrypted from now on and was removed from the activity and from pending changes. " +
  "Backups and SQLite's write-ahead log may still contain it in plain text.";

/** Shorter payloads are not searched for in notes: they would match ordinary words. */
const searchedLengthMin = 5;
const placeholder = JSON.parse(redactedPayload) as string;

/** Whether a write makes the payloads of a flag secret. */
export function isEncryptionTurnedOn(before: Flag, after: Flag): boolean {
  return !before.hasEncryptedPayloads && after.hasEncryptedPayloads === true;
}

/**
 * Replaces every payload of the flag in its activity, its scheduled changes, its change requests and their notes by the
 * placeholder. A pending change keeps the payload that the flag has when it is made.
 */
export function redactHistory(t: MetadataTx, before: Flag, after: Flag): void {
  const { id: flagId, projectId } = after;
  const secrets = new Set<string>();
  collectSecrets(before.filters, secrets);

  const entries = t
    .select()
    .from(activity)
    .where(
      and(
        eq(activity.projectId, projectId),
        eq(activity.scope, "FeatureFlag"),
        eq(activity.itemId, String(flagId)),
      ),
    )
    .all();
  const scheduled = t.select().from(scheduledChange).where(eq(scheduledChange.flagId, flagId)).all();
  const requests = t.select().from(changeRequest).where(eq(changeRequest.flagId, flagId)).all();
  for (const { detail } of entries) collectSecrets(detail, secrets);
  for (const { payload } of scheduled) collectSecrets(payload, secrets);
  for (const { changes, original } of requests) collectSecrets([changes, original], secrets);

  const redact = redactor(secrets);
  for (const { id, detail } of entries)
    update(detail, redact(detail), (value) =>
      t.update(activity).set({ detail: value }).where(eq(activity.id, id)).run(),
    );
  for (const { id, payload, failureReason } of scheduled) {
    const shown = failureReason === null ? null : (redact(failureReason) as string);
    update(payload, redact(payload), (value) =>
      t
        .update(scheduledChange)
        .set({ payload: value, failureReason: shown })
        .where(eq(scheduledChange.id, id))
        .run(),
    );
  }
  for (const { id, changes, original, note } of requests)
    update({ changes, original, note }, redact({ changes, original, note }), (value) =>
      t
        .update(changeRequest)
        .set(value as { changes: JsonObject; original: JsonObject; note: string })
        .where(eq(changeRequest.id, id))
        .run(),
    );
}

function update(before: JsonObject, after: Json, write: (value: JsonObject) => void): void {
  if (!Bun.deepEquals(before, after)) write(after as JsonObject);
}

/** The values of all objects called `payloads`, as JSON and, where they are strings, as their text. */
function collectSecrets(value: Json, secrets: Set<string>): void {
  const open: [name: string, value: Json][] = [["", value]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [name, inner] = next;
    if (Array.isArray(inner)) for (const each of inner) open.push([name, each]);
    else if (isJsonObject(inner)) {
      if (name === "payloads") for (const each of Object.values(inner)) addSecret(each, secrets);
      for (const entry of Object.entries(inner)) open.push(entry);
    }
  }
}

function addSecret(payload: Json, secrets: Set<string>): void {
  const source = typeof payload === "string" ? payload : JSON.stringify(payload);
  if (source === redactedPayload) return;
  const texts = [source];
  try {
    const parsed: unknown = JSON.parse(source);
    if (typeof parsed === "string") texts.push(parsed);
  } catch {
    // Stored payloads are JSON; one that is not is searched for as it is.
  }
  for (const text of texts) if (text.length >= searchedLengthMin) secrets.add(text);
}

/** Replaces payloads, and every string that contains one. */
function redactor(secrets: ReadonlySet<string>): (value: Json) => Json {
  // The longest first: one may contain another.
  const sorted = [...secrets].sort((one, other) => other.length - one.length);
  const inText = (text: string) =>
    sorted.reduce((shown, secret) => shown.replaceAll(secret, placeholder), text);
  const redact = (value: Json): Json => {
    if (typeof value === "string") return inText(value);
    if (Array.isArray(value)) return value.map(redact);
    if (!isJsonObject(value)) return value;
    const shown = isJsonObject(value.payloads) ? hidePayloads(value) : value;
    return Object.fromEntries(
      Object.entries(shown).map(([name, inner]) => [name, name === "payloads" ? inner : redact(inner)]),
    );
  };
  return redact;
}
