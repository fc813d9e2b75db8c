/**
 * The outbox of webhooks. A delivery is queued in the transaction of the change that it reports, so that neither a crash nor a
 * rollback separates them; the server sends it afterwards (`operate/webhooks/sender.ts`).
 */

import { and, asc, desc, eq, inArray, lte, ne, or, sql } from "drizzle-orm";
import type { JsonObject } from "../lib/json/value.ts";
import { dayMs } from "../lib/time.ts";
import type { MetadataTx, Reading } from "./db.ts";
import { webhook, webhookDelivery } from "./schema.ts";

/** What a webhook can report. */
export const webhookEvents = [
  "flag_changed",
  "change_request_opened",
  "change_request_decided",
  "spike",
  "ingestion_warning",
  "backup_failed",
  "weekly_summary",
] as const;
export type WebhookEvent = (typeof webhookEvents)[number];
/** `test` is sent on request only. */
export type DeliveryEvent = WebhookEvent | "test";

/** Pending deliveries per webhook; further events are counted as skipped. */
export const pendingMax = 10_000;
/** Finished deliveries that stay listed per webhook, and for how long. */
export const finishedMax = 500;
const finishedDaysMax = 30;
/** How long a delivery is retried. */
const retryMs = dayMs;
const firstDelayMs = 10_000;
const delayMsMax = 3_600_000;
const errorLengthMax = 300;

export type Delivery = typeof webhookDelivery.$inferSelect;

export interface NewDelivery {
  projectId: number;
  event: WebhookEvent;
  /** What the body is created from when it is sent. */
  subject: JsonObject;
  /** Display name of what the event is about. */
  item?: string;
  now: Date;
}

/** Queues an event for each webhook of the project that subscribed to it. */
export function queueWebhooks(t: MetadataTx, { projectId, event, subject, item, now }: NewDelivery): void {
  const hooks = t
    .select({ id: webhook.id, events: webhook.events })
    .from(webhook)
    .where(and(eq(webhook.projectId, projectId), eq(webhook.active, true)))
    .all();
  for (const { id, events } of hooks)
    if (events.includes(event)) queueDelivery(t, id, { event, subject, item, now });
}

/** Queues an event for one webhook. @returns undefined if too many deliveries are pending; the event is skipped. */
export function queueDelivery(
  t: MetadataTx,
  webhookId: number,
  { event, subject, item = "", now }: Omit<NewDelivery, "projectId" | "event"> & { event: DeliveryEvent },
): Delivery | undefined {
  const isPending = and(eq(webhookDelivery.webhookId, webhookId), eq(webhookDelivery.state, "pending"));
  if (count(t, isPending) >= pendingMax) {
    t.update(webhook).set({ skipped: sql`skipped + 1` }).where(eq(webhook.id, webhookId)).run();
    return undefined;
  }
  return t
    .insert(webhookDelivery)
    .values({
      uuid: Bun.randomUUIDv7(),
      webhookId,
      event,
      item,
      subject,
      createdAt: now,
      nextAttemptAt: now,
    })
    .returning()
    .get();
}

/** Newest first. */
export function listDeliveries(
  db: Reading,
  webhookId: number,
  { limit, offset }: { limit: number; offset: number },
): { deliveries: Delivery[]; count: number } {
  const chosen = eq(webhookDelivery.webhookId, webhookId);
  const deliveries = db
    .select()
    .from(webhookDelivery)
    .where(chosen)
    .orderBy(desc(webhookDelivery.id))
    .limit(limit)
    .offset(offset)
    .all();
  return { deliveries, count: count(db, chosen) };
}

const count = (db: Reading, chosen: ReturnType<typeof and>): number =>
  db.select({ count: sql<number>`count(*)` }).from(webhookDelivery).where(chosen).get()!.count;

export function findDelivery(db: Reading, webhookId: number, id: number): Delivery | undefined {
  return db
    .select()
    .from(webhookDelivery)
    .where(and(eq(webhookDelivery.webhookId, webhookId), eq(webhookDelivery.id, id)))
    .get();
}

/** The oldest due delivery of each webhook, without those of `busy` webhooks. */
export function dueDeliveries(db: Reading, now: Date, busy: ReadonlySet<number>): Delivery[] {
  const oldest = db
    .select({ id: sql<number>`min(${webhookDelivery.id})` })
    .from(webhookDelivery)
    .where(and(eq(webhookDelivery.state, "pending"), lte(webhookDelivery.nextAttemptAt, now)))
    .groupBy(webhookDelivery.webhookId);
  return db
    .select()
    .from(webhookDelivery)
    .where(inArray(webhookDelivery.id, oldest))
    .orderBy(asc(webhookDelivery.nextAttemptAt), asc(webhookDelivery.id))
    .all()
    .filter(({ webhookId }) => !busy.has(webhookId));
}

/** Result of one attempt. */
export interface Attempt {
  isDelivered: boolean;
  /** HTTP status; null without a response. */
  status: number | null;
  error: string | null;
  durationMs: number;
  /** A retry is pointless: the receiver unsubscribed or the webhook is off. */
  isFinal?: boolean;
  /** Delay that the receiver asked for. */
  retryAfterMs?: number;
}

/**
 * Records an attempt, and when the next one is due: after 10 seconds, then twice the previous delay up to an hour, for a day.
 *
 * @returns the delivery; undefined if it was deleted meanwhile.
 */
export function recordAttempt(
  t: MetadataTx,
  delivery: Pick<Delivery, "id" | "webhookId" | "createdAt" | "attempts">,
  attempt: Attempt,
  now: Date,
): Delivery | undefined {
  const attempts = delivery.attempts + 1;
  const nextAt =
    attempt.isDelivered || attempt.isFinal ? null : nextAttemptAt(delivery, attempts, attempt, now);
  const recorded = t
    .update(webhookDelivery)
    .set({
      state: attempt.isDelivered ? "delivered" : nextAt === null ? "failed" : "pending",
      attempts,
      nextAttemptAt: nextAt,
      lastAttemptAt: now,
      durationMs: Math.round(attempt.durationMs),
      status: attempt.status,
      error: attempt.error?.slice(0, errorLengthMax) ?? null,
    })
    .where(eq(webhookDelivery.id, delivery.id))
    .returning()
    .get();
  if (recorded !== undefined && recorded.state !== "pending") prune(t, delivery.webhookId, now);
  return recorded;
}

/** The last attempt is a day after the event. */
function nextAttemptAt(
  { createdAt }: Pick<Delivery, "createdAt">,
  attempts: number,
  { retryAfterMs = 0 }: Attempt,
  now: Date,
): Date | null {
  const last = createdAt.getTime() + retryMs;
  if (now.getTime() >= last) return null;
  const delay = Math.min(Math.max(firstDelayMs * 2 ** (attempts - 1), retryAfterMs), delayMsMax);
  return new Date(Math.min(now.getTime() + delay, last));
}

function prune(t: MetadataTx, webhookId: number, now: Date): void {
  const finished = and(eq(webhookDelivery.webhookId, webhookId), ne(webhookDelivery.state, "pending"));
  const surplus = t
    .select({ id: webhookDelivery.id })
    .from(webhookDelivery)
    .where(finished)
    .orderBy(desc(webhookDelivery.id))
    .limit(1)
    .offset(finishedMax)
    .get();
  const oldest = new Date(now.getTime() - finishedDaysMax * dayMs);
  t.delete(webhookDelivery)
    .where(
      and(finished, or(lte(webhookDelivery.createdAt, oldest), lte(webhookDelivery.id, surplus?.id ?? 0))),
    )
    .run();
}

/** Ends pending deliveries of a webhook that was turned off. */
export function cancelPending(t: MetadataTx, webhookId: number): void {
  t.update(webhookDelivery)
    .set({ state: "failed", nextAttemptAt: null, error: "The webhook was turned off." })
    .where(and(eq(webhookDelivery.webhookId, webhookId), eq(webhookDelivery.state, "pending")))
    .run();
}

export function deleteDeliveries(t: MetadataTx, webhookId: number): void {
  t.delete(webhookDelivery).where(eq(webhookDelivery.webhookId, webhookId)).run();
}
