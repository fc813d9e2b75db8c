/** Webhooks of projects: what they report, where to and in which format. */

import { and, asc, eq, like, sql } from "drizzle-orm";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { SecretCipher } from "../lib/sealed-text.ts";
import { type Author, changesBetween, getCreatorId, recordActivity } from "./activity.ts";
import type { MetadataTx, Reading } from "./db.ts";
import { newWebhookSecret } from "./key-formats.ts";
import type { Metadata } from "./metadata.ts";
import { type WebhookFormat, webhook, webhookReported } from "./schema.ts";
import { cancelPending, deleteDeliveries } from "./webhook-outbox.ts";

/** Webhooks per project. */
const webhooksMax = 20;

type Row = typeof webhook.$inferSelect;
/** Without the URL and the secret, which are encrypted. */
export type Webhook = Omit<Row, "url" | "secret">;

export interface WebhookFields {
  name: string;
  url: string;
  format: WebhookFormat;
  template: JsonObject | null;
  events: string[];
  active: boolean;
}

export interface WebhookDeps {
  metadata: Metadata;
  secrets: SecretCipher;
}

/** Where and how to send, decrypted; undefined if the key of the data directory has changed. */
export interface WebhookTarget extends Webhook {
  url: string;
  secret: string;
}

/** What an encrypted column belongs to. */
export const getIdentity = ({ projectId }: { projectId: number }, column: "URL" | "secret") =>
  `${column} of a webhook of project ${projectId}`;

/** Path segments of this length are probably secrets, as in the URLs of Slack and Discord. */
const secretLengthMin = 16;

/** A URL without its secret parts: long path segments and the values of the query. */
function maskUrl(url: string): string {
  const { origin, pathname, searchParams } = new URL(url);
  const path = pathname
    .split("/")
    .map((segment) => (segment.length < secretLengthMin ? segment : `…${segment.slice(-4)}`));
  const query = [...searchParams.keys()].map((name) => `${encodeURIComponent(name)}=…`).join("&");
  return origin + path.join("/") + (query === "" ? "" : `?${query}`);
}

export function listWebhooks(db: Reading, projectId: number): Webhook[] {
  return db
    .select()
    .from(webhook)
    .where(eq(webhook.projectId, projectId))
    .orderBy(asc(webhook.id))
    .all()
    .map(shownPart);
}

/** @throws {NotFoundError} */
export function findWebhook(db: Reading, projectId: number, id: number): Webhook {
  return shownPart(getRow(db, projectId, id));
}

/** The webhook of a delivery; undefined if it was deleted or cannot be decrypted. */
export function openTarget({ metadata, secrets }: WebhookDeps, id: number): WebhookTarget | undefined {
  const row = metadata.db.select().from(webhook).where(eq(webhook.id, id)).get();
  if (row === undefined) return undefined;
  const url = secrets.open(getIdentity(row, "URL"), row.url);
  const secret = secrets.open(getIdentity(row, "secret"), row.secret);
  return url === undefined || secret === undefined ? undefined : { ...row, url, secret };
}

/** Creates a webhook. @returns it and its secret, which is shown only now. @throws {InvalidFieldError} */
export function createWebhook(
  { metadata, secrets }: WebhookDeps,
  target: { projectId: number; by: Author; now: Date },
  fields: WebhookFields,
): { webhook: Webhook; secret: string } {
  const secret = newWebhookSecret();
  return metadata.change((t) => {
    if (listWebhooks(t, target.projectId).length >= webhooksMax) {
      throw new InvalidFieldError(
        null,
        "limit_reached",
        `A project can have at most ${webhooksMax} webhooks. Delete one that is not needed.`,
      );
    }
    const row = t
      .insert(webhook)
      .values({
        ...fields,
        projectId: target.projectId,
        createdById: getCreatorId(target.by),
        createdAt: target.now,
        updatedAt: target.now,
        url: secrets.seal(getIdentity(target, "URL"), fields.url),
        shownUrl: maskUrl(fields.url),
        secret: secrets.seal(getIdentity(target, "secret"), secret),
      })
      .returning()
      .get();
    const created = shownPart(row);
    record(t, created, "created", target);
    return { webhook: created, secret };
  });
}

/** Changes a webhook; turning it off cancels pending deliveries. @throws {NotFoundError} */
export function updateWebhook(
  { metadata, secrets }: WebhookDeps,
  target: { projectId: number; id: number; by: Author; now: Date },
  fields: Partial<WebhookFields>,
): Webhook {
  return metadata.change((t) => {
    const before = shownPart(getRow(t, target.projectId, target.id));
    const { url, ...others } = fields;
    // Clients send back the masked URL that they read.
    const isNewUrl = url !== undefined && url !== before.shownUrl;
    // A new subscriber of weekly summaries starts with the next week.
    const isNewSubscriber =
      fields.events?.includes("weekly_summary") === true && !before.events.includes("weekly_summary");
    const address = isNewUrl
      ? { url: secrets.seal(getIdentity(target, "URL"), url), shownUrl: maskUrl(url) }
      : {};
    const row = t
      .update(webhook)
      .set({ ...others, ...address, ...(isNewSubscriber ? { summaryWeek: "" } : {}), updatedAt: target.now })
      .where(eq(webhook.id, target.id))
      .returning()
      .get();
    if (before.active && !row.active) cancelPending(t, target.id);
    const after = shownPart(row);
    record(t, after, "updated", target, before, isNewUrl ? ["url"] : []);
    return after;
  });
}

/** Replaces the secret. @returns the new one, which is shown only now. @throws {NotFoundError} */
export function rotateWebhookSecret(
  { metadata, secrets }: WebhookDeps,
  target: { projectId: number; id: number; by: Author; now: Date },
): { webhook: Webhook; secret: string } {
  const secret = newWebhookSecret();
  return metadata.change((t) => {
    const before = getRow(t, target.projectId, target.id);
    const row = t
      .update(webhook)
      .set({ secret: secrets.seal(getIdentity(target, "secret"), secret), updatedAt: target.now })
      .where(eq(webhook.id, before.id))
      .returning()
      .get();
    const after = shownPart(row);
    record(t, after, "updated", target, after, ["secret"]);
    return { webhook: after, secret };
  });
}

/** Deletes a webhook and its deliveries. @throws {NotFoundError} */
export function deleteWebhook(
  { metadata }: Pick<WebhookDeps, "metadata">,
  target: { projectId: number; id: number; by: Author; now: Date },
): void {
  metadata.change((t) => {
    const before = shownPart(getRow(t, target.projectId, target.id));
    deleteDeliveries(t, target.id);
    t.delete(webhookReported)
      .where(like(webhookReported.name, `% ${target.id} %`))
      .run();
    t.delete(webhook).where(eq(webhook.id, target.id)).run();
    record(t, before, "deleted", target);
  });
}

/** Records that a weekly summary was queued for the week that starts on this Monday. */
export function recordSummaryWeek(t: MetadataTx, id: number, week: string): void {
  t.update(webhook).set({ summaryWeek: week }).where(eq(webhook.id, id)).run();
}

/** Active webhooks that subscribed to an event. */
export function subscribers(db: Reading, event: string): Webhook[] {
  return db
    .select()
    .from(webhook)
    .where(and(eq(webhook.active, true), sql`instr(${webhook.events}, ${JSON.stringify(event)}) > 0`))
    .orderBy(asc(webhook.id))
    .all()
    .map(shownPart);
}

function getRow(db: Reading, projectId: number, id: number): Row {
  const row = db
    .select()
    .from(webhook)
    .where(and(eq(webhook.projectId, projectId), eq(webhook.id, id)))
    .get();
  if (row === undefined) throw new NotFoundError(undefined, `webhook ${id}`);
  return row;
}

function shownPart({ url: _, secret: __, ...shown }: Row): Webhook {
  return shown;
}

function tracked({ name, shownUrl, format, template, events, active }: Webhook): JsonObject {
  return { name, url: shownUrl, format, template, events, active };
}

/** @param replaced fields whose masked values may be equal before and after. */
function record(
  t: MetadataTx,
  after: Webhook,
  activity: string,
  { by, now }: { by: Author; now: Date },
  before = after,
  replaced: readonly string[] = [],
): void {
  const fields = Object.keys(tracked(after));
  const changes = changesBetween("Webhook", tracked(before), tracked(after), fields);
  for (const field of replaced) {
    if (changes.some((change) => change.field === field)) continue;
    const shown = field === "url" ? after.shownUrl : "••••";
    changes.push({ type: "Webhook", action: "changed", field, before: shown, after: shown });
  }
  if (activity === "updated" && changes.length === 0) return;
  recordActivity(t, {
    by,
    projectId: after.projectId,
    activity,
    scope: "Webhook",
    itemId: after.id,
    name: after.name || after.shownUrl,
    changes,
    now,
  });
}
