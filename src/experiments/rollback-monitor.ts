/**
 * Switches off flags whose guardrails or rollback conditions are violated (contract: experiments 2.8).
 *
 * Acts after two violated checks in a row. It needs no approval: the user who set the condition had the permission.
 */

import { and, desc, eq, gte } from "drizzle-orm";
import type { Author } from "../accounts/activity.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { activity } from "../accounts/schema.ts";
import type { InsightQueries } from "../dashboards/api/compute-insight.ts";
import { editByActor } from "../flags/api/feature-flags.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { stopRollout } from "../flags/store/pending-changes.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import { isJsonObject } from "../lib/json/value.ts";
import { dayMs } from "../lib/time.ts";
import type { ComputeDeps } from "./compute.ts";
import { guardrailWatches } from "./guardrail-watches.ts";
import { conditionWatches } from "./rollback-conditions.ts";
import type { Violation, Watch } from "./rollback-watch.ts";

const violationsNeeded = 2;
/** After a user switched a flag on that had been rolled back. */
const holdMs = dayMs;

export interface RollbackDeps extends FlagWriteDeps, ComputeDeps {
  metadata: Metadata;
  insights: InsightQueries;
  /** Changes when events were loaded: without new events, a check says nothing new. */
  revision: () => Promise<string>;
  /** Runs a change, in a cluster as one of all nodes. */
  change: <Result>(work: (now?: Date) => Result) => Promise<Result>;
  onError: (error: unknown) => void;
}

export class RollbackMonitor {
  /** Violated checks in a row, by key. */
  private violated = new Map<string, number>();
  private lastRevision: string | undefined;
  private readonly tasks: PeriodicTasks;

  constructor(private readonly deps: RollbackDeps) {
    this.tasks = new PeriodicTasks(deps.onError);
  }

  /** Checks at an interval until the signal is aborted. */
  start(intervalMs: number, stopping: AbortSignal): void {
    this.tasks.every(intervalMs, () => this.check(new Date()));
    stopping.addEventListener("abort", () => this.tasks.stop(), { once: true });
  }

  /** Checks all conditions, one at a time, if events were loaded since the last check. */
  async check(now: Date): Promise<void> {
    const { db } = this.deps.metadata;
    const watches = [...guardrailWatches(this.deps), ...conditionWatches(this.deps)].filter(
      ({ projectId, flagId }) => {
        const flag = findFlag(db, projectId, flagId);
        return flag?.active && !flag.deleted && !this.isHeld(projectId, flagId, now);
      },
    );
    const before = this.violated;
    this.violated = new Map(
      watches.flatMap(({ key }) => (before.has(key) ? [[key, before.get(key)!] as const] : [])),
    );
    if (watches.length === 0) return;
    const revision = await this.deps.revision();
    if (revision === this.lastRevision) return;
    this.lastRevision = revision;
    for (const watch of watches) await this.checkOne(watch, now).catch(this.deps.onError);
  }

  private async checkOne(watch: Watch, now: Date): Promise<void> {
    const violation = await watch.find(now);
    const count = violation === undefined ? 0 : (this.violated.get(watch.key) ?? 0) + 1;
    if (violation === undefined || count >= violationsNeeded) this.violated.delete(watch.key);
    else this.violated.set(watch.key, count);
    if (violation !== undefined && count >= violationsNeeded)
      await this.deps.change((at = now) => this.rollBack(watch, violation, at));
  }

  /** One change of the flag, which `revert` undoes. */
  private rollBack(watch: Watch, { note, jobType, jobId, payload }: Violation, now: Date): void {
    const { deps } = this;
    const { projectId, flagId } = watch;
    deps.metadata.change((t) => {
      const flag = findFlag(t, projectId, flagId);
      const project = deps.metadata.projects.find(projectId);
      if (project === undefined || flag === undefined || !flag.active || flag.deleted) return;
      if (!watch.applies(t, flag)) return;
      const by: Author = { job_type: jobType, job_id: jobId, payload };
      editByActor(deps, { project, now, by, isRollback: true }, flagId, {
        active: false,
        performed_rollback: true,
        note,
      });
      stopRollout(t, flagId, now, `Stopped: ${note}`);
    });
  }

  /** Whether the flag was switched on again within a day after a rollback. */
  private isHeld(projectId: number, flagId: number, now: Date): boolean {
    const entries = this.deps.metadata.db
      .select({ detail: activity.detail })
      .from(activity)
      .where(
        and(
          eq(activity.projectId, projectId),
          eq(activity.scope, "FeatureFlag"),
          eq(activity.itemId, String(flagId)),
          gte(activity.createdAt, new Date(now.getTime() - holdMs)),
        ),
      )
      .orderBy(desc(activity.createdAt))
      .all();
    return entries.some(({ detail }) => {
      const changes = Array.isArray(detail.changes) ? detail.changes.filter(isJsonObject) : [];
      return changes.some(({ field, before }) => field === "performed_rollback" && before === true);
    });
  }
}
