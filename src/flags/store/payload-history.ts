/**
 * Payloads that were readable before encryption: other places in the metadata that contain them (contract:
 * management-api 4.5).
 *
 * SQLite overwrites the replaced pages (`secure_delete`, `accounts/db.ts`); backups and its write-ahead log may still
 * contain them.
 */

import { and, eq } from "drizzle-orm";
import type { MetadataTx } from "../../accounts/db.ts";
import { activity, changeRequest, scheduledChange } from "../../accounts/schema.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { Flag } from "../fields.ts";
import { hidePayloads, redactedPayload } from "../rules/types.ts";

/** Warning in the response to a write that turns encryption on. */
export const encryptionWarning =
  "The payload is encrypted from now on and was removed from the activity and from pending changes. " +
  "Backups and SQLite's write-ahead log may still contain it in plain text.";

/** Shorter payloads are not searched in notes: they would match ordinary words. */
const searchedLengthMin = 5;
const placeholder = JSON.parse(redactedPayload) as string;

/** Whether a write makes the payloads of a flag secret. */
export function isEncryptionTurnedOn(before: Flag, after: Flag): boolean {
  return !before.hasEncryptedPayloads && after.hasEncryptedPayloads === true;
}

/**
 * Replaces every payload of the flag in its activity, scheduled changes and change requests by the placeholder, and
 * also occurrences in their notes and descriptions. A pending change keeps the payload that the flag has when the
 * change is applied.
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

  const inText = redactor(secrets);
  for (const { id, detail } of entries)
    update(detail, redactedDetail(detail, inText), (value) =>
      t.update(activity).set({ detail: value }).where(eq(activity.id, id)).run(),
    );
  for (const { id, payload, failureReason } of scheduled) {
    const before = { payload, failureReason };
    const value = isJsonObject(payload.value) ? withRedactedName(payload.value, inText) : payload.value;
    const after = {
      payload: value === undefined ? payload : { ...payload, value },
      failureReason: failureReason && inText(failureReason),
    };
    update(before, withoutPayloads(after), (shown) =>
      t.update(scheduledChange).set(shown).where(eq(scheduledChange.id, id)).run(),
    );
  }
  for (const { id, changes, original, note } of requests) {
    const after = {
      changes: withRedactedName(changes, inText),
      original: withRedactedName(original, inText),
      note: inText(note),
    };
    update({ changes, original, note }, withoutPayloads(after), (shown) =>
      t.update(changeRequest).set(shown).where(eq(changeRequest.id, id)).run(),
    );
  }
}

function update<Row extends JsonObject>(before: Row, after: Row, write: (value: Row) => void): void {
  if (!Bun.deepEquals(before, after)) write(after);
}

/** An activity entry; only notes and descriptions may quote a payload. */
function redactedDetail(detail: JsonObject, inText: (text: string) => string): JsonObject {
  const changes = Array.isArray(detail.changes) ? detail.changes : [];
  return withoutPayloads({
    ...detail,
    changes: changes.map((change) =>
      isJsonObject(change) && change.field === "name"
        ? { ...change, ...mapStrings({ before: change.before ?? null, after: change.after ?? null }, inText) }
        : change,
    ),
    ...(typeof detail.note === "string" ? { note: inText(detail.note) } : {}),
  });
}

/** `name` is the description of a flag. */
const withRedactedName = (fields: JsonObject, inText: (text: string) => string): JsonObject =>
  typeof fields.name === "string" ? { ...fields, name: inText(fields.name) } : fields;

const mapStrings = (fields: JsonObject, inText: (text: string) => string): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === "string" ? inText(value) : value]),
  );

/** The values of all objects called `payloads`, as JSON and, if they are strings, as their text. */
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

/** A stored payload, and the strings and numbers in it: a note may quote only the token of an object. */
function addSecret(payload: Json, secrets: Set<string>): void {
  const source = typeof payload === "string" ? payload : JSON.stringify(payload);
  if (source === redactedPayload) return;
  const open: unknown[] = [];
  const add = (text: string) => {
    if (text.length >= searchedLengthMin) secrets.add(text);
  };
  try {
    open.push(JSON.parse(source));
    if (typeof open[0] === "object" && open[0] !== null) add(source);
  } catch {
    // Stored payloads are JSON; one that is not is searched verbatim.
    add(source);
  }
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") add(value);
    else if (typeof value === "number") add(String(value));
    else if (typeof value === "object" && value !== null) open.push(...Object.values(value));
  }
}

/** Replaces every payload in a text. */
function redactor(secrets: ReadonlySet<string>): (text: string) => string {
  // The longest first: one may contain another.
  const sorted = [...secrets].sort((a, b) => b.length - a.length);
  return (text) => sorted.reduce((shown, secret) => shown.replaceAll(secret, () => placeholder), text);
}

/** The value with every payload of filters in it replaced; conditions stay unchanged. */
function withoutPayloads<Value extends Json>(value: Value): Value;
function withoutPayloads(value: Json): Json {
  if (Array.isArray(value)) return value.map((inner) => withoutPayloads(inner));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(hidePayloads(value)).map(([name, inner]) => [
      name,
      name === "payloads" ? inner : withoutPayloads(inner),
    ]),
  );
}
