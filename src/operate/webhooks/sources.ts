/** Queues webhook events that are not changes of the metadata: spikes, ingestion warnings, failed backups, weekly summaries. */

import { and, desc, eq, gte, lt, sql } from "drizzle-orm";
import type { MetadataTx, Reading } from "../../accounts/db.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import { listOrganizations } from "../../accounts/organizations.ts";
import type { Project } from "../../accounts/project-directory.ts";
import { activity, changeRequest, webhookReported } from "../../accounts/schema.ts";
import { queueDelivery, queueWebhooks } from "../../accounts/webhook-outbox.ts";
import { recordSummaryWeek, subscribers, type Webhook } from "../../accounts/webhooks.ts";
import { readLastBackup } from "../../backup/last-backup.ts";
import { flagKeysById } from "../../flags/store/flag.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import { dayMs } from "../../lib/time.ts";
import { wallTimeAt } from "../../lib/time-zone.ts";
import type { IngestionReader, WarningCount } from "../../persons/ingestion-reader.ts";
import { type SpikeSignal, spikeJson } from "../../persons/spike-detector.ts";

/** The hour of a project's first day of the week at which its summary is sent. */
const summaryHour = 8;
const errorLengthMax = 1_000;

/** Queues the start or the end of a spike. */
export function queueSpike(metadata: Metadata, spike: SpikeSignal, now: Date): void {
  const { projectId, kind } = spike;
  metadata.change((t) =>
    queueWebhooks(t, { projectId, event: "spike", subject: { kind, spike: spikeJson(spike) }, now }),
  );
}

/** Projects whose webhooks report what concerns the whole server: those of the first organization. */
export function seesServer(metadata: Metadata, { organizationId }: Pick<Project, "organizationId">): boolean {
  return listOrganizations(metadata.db)[0]?.id === organizationId;
}

/** Whether the last backup has failed and that was not reported yet. */
export function hasNewBackupFailure(metadata: Metadata, dataDir: string): boolean {
  const failedAt = readLastBackup(dataDir)?.failed_at ?? null;
  return failedAt !== null && failedAt !== reported(metadata.db, backupName);
}

/** Queues the failure of the last backup, once. */
export function queueBackupFailure(metadata: Metadata, dataDir: string, now: Date): void {
  const last = readLastBackup(dataDir);
  if (last === null || last.failed_at === null) return;
  const { failed_at, error, created_at: lastSuccess } = last;
  metadata.change((t) => {
    if (reported(t, backupName) === failed_at) return;
    recordReported(t, backupName, failed_at);
    const subject = { failed_at, error: (error ?? "").slice(0, errorLengthMax), last_backup_at: lastSuccess };
    for (const project of metadata.projects.list())
      if (seesServer(metadata, project))
        queueWebhooks(t, { projectId: project.id, event: "backup_failed", subject, now });
  });
}

const backupName = "backup_failed_at";

function reported(db: Reading, name: string): string | undefined {
  return db.select().from(webhookReported).where(eq(webhookReported.name, name)).get()?.value;
}

function recordReported(t: MetadataTx, name: string, value: string): void {
  t.insert(webhookReported)
    .values({ name, value })
    .onConflictDoUpdate({ target: webhookReported.name, set: { value } })
    .run();
}

/** How long a kind of warning is not reported again. */
const warningsEveryMs = dayMs;
const warningName = (hook: Webhook, type: string) => `ingestion_warning ${hook.id} ${type}`;

/** Kinds of ingestion warnings of the last day that a webhook has not reported within a day. */
export function newWarnings(metadata: Metadata, counts: readonly WarningCount[], now: Date) {
  const since = now.getTime() - warningsEveryMs;
  return subscribers(metadata.db, "ingestion_warning").flatMap((hook) =>
    counts
      .filter(({ projectId, type }) => {
        if (projectId !== hook.projectId) return false;
        const last = reported(metadata.db, warningName(hook, type));
        return last === undefined || Date.parse(last) <= since;
      })
      .map(({ type, count }) => ({ hook, type, count })),
  );
}

/** Counts of the ingestion warnings of the last day; none if no webhook reports them. */
export async function recentWarnings(
  { metadata, ingestion }: { metadata: Metadata; ingestion: IngestionReader },
  now: Date,
): Promise<WarningCount[]> {
  if (subscribers(metadata.db, "ingestion_warning").length === 0) return [];
  return await ingestion.warningCounts((now.getTime() - warningsEveryMs) * 1_000);
}

/** Queues ingestion warnings, each kind at most once a day. */
export function queueWarnings(metadata: Metadata, counts: readonly WarningCount[], now: Date): void {
  for (const { hook, type, count } of newWarnings(metadata, counts, now)) {
    metadata.change((t) => {
      recordReported(t, warningName(hook, type), now.toISOString());
      queueDelivery(t, hook.id, { event: "ingestion_warning", item: type, subject: { type, count }, now });
    });
  }
}

/** The first day of the current week of a project, once its summary is due, as YYYY-MM-DD. */
export function summaryWeek(
  { timezone, weekStartDay }: Pick<Project, "timezone" | "weekStartDay">,
  now: Date,
): string {
  const wall = new Date(wallTimeAt(now.getTime(), timezone) - summaryHour * 3_600_000);
  const first = weekStartDay === 0 ? 0 : 1;
  const since = (wall.getUTCDay() - first + 7) % 7;
  return new Date(wall.getTime() - since * dayMs).toISOString().slice(0, 10);
}

/** Webhooks whose weekly summary is due, with the week's first day. */
export function dueSummaries(metadata: Metadata, now: Date) {
  return subscribers(metadata.db, "weekly_summary").flatMap((hook) => {
    const project = metadata.projects.find(hook.projectId);
    if (project === undefined || project.archivedAt !== null) return [];
    const week = summaryWeek(project, now);
    return week === hook.summaryWeek ? [] : [{ hook, project, week }];
  });
}

/** A figure of the week of a summary and of the week before. */
export interface WeeklyFigure {
  current: number;
  previous: number;
}

/** Figures of web analytics. */
export interface WeeklyWeb {
  visitors: WeeklyFigure;
  pageViews: WeeklyFigure;
}

/** Reads the figures of days of a project, both included; undefined without page views or if the engine is unavailable. */
export type ReadWeeklyWeb = (
  project: Project,
  days: { from: string; to: string },
) => Promise<WeeklyWeb | undefined>;

export interface WeeklyFigures {
  events: WeeklyFigure;
  web: WeeklyWeb | undefined;
}

/** The figures of summaries that are due, by project and week. */
export async function weeklyFigures(
  due: ReturnType<typeof dueSummaries>,
  { ingestion, readWeb }: { ingestion: IngestionReader; readWeb: ReadWeeklyWeb },
): Promise<Map<string, WeeklyFigures>> {
  const found = new Map<string, WeeklyFigures>();
  for (const { project, week } of due) {
    // Webhooks of the same project share them.
    if (found.has(weekName(project, week))) continue;
    const count = async (dateFrom: string, dateTo: string) => {
      const { identified, anonymous, historical } = (await ingestion.usage(project.id, { dateFrom, dateTo }))
        .totals;
      return identified + anonymous + historical;
    };
    const days = { from: dayBefore(week, 7), to: dayBefore(week, 1) };
    found.set(weekName(project, week), {
      events: {
        current: await count(days.from, days.to),
        previous: await count(dayBefore(week, 14), dayBefore(week, 8)),
      },
      web: await readWeb(project, days),
    });
  }
  return found;
}

const weekName = ({ id }: Project, week: string) => `${id} ${week}`;

const dayBefore = (week: string, days: number) =>
  new Date(Date.parse(`${week}T00:00:00Z`) - days * dayMs).toISOString().slice(0, 10);

/**
 * Queues the weekly summaries that are due. A new webhook starts with the current week.
 * @param weeks of `weeklyFigures`; a summary that became due since waits for the next time
 */
export function queueSummaries(
  metadata: Metadata,
  weeks: ReadonlyMap<string, WeeklyFigures>,
  now: Date,
): void {
  for (const { hook, project, week } of dueSummaries(metadata, now)) {
    const figures = weeks.get(weekName(project, week));
    if (figures === undefined) continue;
    metadata.change((t) => {
      recordSummaryWeek(t, hook.id, week);
      if (hook.summaryWeek === "") return;
      const subject = getSummary(t, project, week, figures);
      queueDelivery(t, hook.id, { event: "weekly_summary", subject, now });
    });
  }
}

/** Keys of changed flags that a summary names. */
const flagKeysMax = 10;

/** Of the seven days before this day: UTC days, except for web analytics, which has those of the project. */
function getSummary(
  t: MetadataTx,
  project: Project,
  week: string,
  { events, web }: WeeklyFigures,
): JsonObject {
  const end = Date.parse(`${week}T00:00:00Z`);
  const ofWeek = and(
    eq(activity.projectId, project.id),
    eq(activity.scope, "FeatureFlag"),
    gte(activity.createdAt, new Date(end - 7 * dayMs)),
    lt(activity.createdAt, new Date(end)),
  );
  const changed = t
    .select({ id: activity.itemId })
    .from(activity)
    .where(ofWeek)
    .groupBy(activity.itemId)
    .orderBy(desc(sql`max(${activity.createdAt})`))
    .all();
  const named = changed.slice(0, flagKeysMax).map(({ id }) => Number(id));
  const keys = flagKeysById(t, project.id, named);
  const pending = t
    .select({ count: sql<number>`count(*)` })
    .from(changeRequest)
    .where(and(eq(changeRequest.projectId, project.id), eq(changeRequest.state, "pending")))
    .get()!.count;
  return {
    from: dayBefore(week, 7),
    to: dayBefore(week, 1),
    events: events.current,
    events_previous: events.previous,
    ...(web === undefined
      ? {}
      : {
          visitors: web.visitors.current,
          visitors_previous: web.visitors.previous,
          page_views: web.pageViews.current,
          page_views_previous: web.pageViews.previous,
        }),
    flags_changed: changed.length,
    flag_keys: named.flatMap((id) => keys.get(id) ?? []),
    change_requests_pending: pending,
  };
}
