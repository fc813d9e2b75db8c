/** Ends surveys that reached their limit of responses, and starts their iterations (contract: experiments 1.5). */

import { and, eq } from "drizzle-orm";
import type { Metadata } from "../accounts/metadata.ts";
import { survey } from "../accounts/schema.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import { iterationAt } from "./iterations.ts";
import { countBySurvey, type SurveyResultDeps } from "./results.ts";
import { running, type Survey, updateSurvey } from "./surveys.ts";

/** A limit takes effect within a minute after the events are loaded. */
export const surveyCheckMs = 20_000;

export interface SurveyMonitorDeps extends FlagWriteDeps, SurveyResultDeps {
  metadata: Metadata;
  /** Runs a change, in a cluster as one of all nodes and with its time. */
  change: <Result>(work: (now?: Date) => Result) => Promise<Result>;
  onError: (error: unknown) => void;
}

export class SurveyMonitor {
  private readonly tasks: PeriodicTasks;

  constructor(private readonly deps: SurveyMonitorDeps) {
    this.tasks = new PeriodicTasks(deps.onError);
  }

  /** Checks at an interval until the signal is aborted. */
  start(intervalMs: number, stopping: AbortSignal): void {
    this.tasks.every(intervalMs, () => this.check(new Date()));
    stopping.addEventListener("abort", () => this.tasks.stop(), { once: true });
  }

  /** Checks all running surveys; without a limit or iterations they cost nothing. */
  async check(now: Date): Promise<void> {
    const all = this.deps.metadata.db.select().from(survey).where(running).all();
    for (const survey of all)
      if (survey.currentIteration !== iterationAt(survey, now).currentIteration)
        await this.update(survey, now, {}).catch(this.deps.onError);
    const limited = Map.groupBy(
      all.filter(({ responsesLimit }) => responsesLimit !== null),
      ({ projectId }) => projectId,
    );
    for (const [projectId, surveys] of limited)
      await this.endFull(projectId, surveys, now).catch(this.deps.onError);
  }

  private async endFull(projectId: number, surveys: readonly Survey[], now: Date): Promise<void> {
    const project = this.deps.metadata.projects.find(projectId);
    if (project === undefined) return;
    const counts = await countBySurvey(this.deps, surveys, { project, now });
    const sentBySurvey = new Map(counts.map(({ surveyId, sent }) => [surveyId, sent]));
    for (const survey of surveys)
      if ((sentBySurvey.get(survey.id) ?? 0) >= survey.responsesLimit!)
        await this.update(survey, now, { end_date: now.toISOString() });
  }

  /** Changes a survey that is still running with the same limit. */
  private async update(checked: Survey, now: Date, input: { end_date?: string }): Promise<void> {
    const { deps } = this;
    await deps.change((at = now) =>
      deps.metadata.change((t) => {
        const current = t
          .select()
          .from(survey)
          .where(and(eq(survey.id, checked.id), running))
          .get();
        const project = deps.metadata.projects.find(checked.projectId);
        if (project === undefined || current?.responsesLimit !== checked.responsesLimit) return;
        const by = { job_type: "survey_schedule", job_id: checked.id, payload: {} };
        const actor = { project, now: at, by, user: undefined, limits: undefined, skipsApproval: true };
        updateSurvey(deps, actor, checked.id, input);
      }),
    );
  }
}
