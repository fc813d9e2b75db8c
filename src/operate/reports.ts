/** What the front does with the engine's reports: metadata of flags, metrics, the spike webhook, the log. */

import type { Metadata } from "../accounts/metadata.ts";
import { recordFirstEvent } from "../accounts/projects.ts";
import type { Report } from "../engine/messages.ts";
import type { ProjectUsage } from "../engine/pipeline/flag-usage.ts";
import { recordFeatureViews, recordFlagCalls } from "../flags/store/flag-usage.ts";
import { isoFromMicros } from "../lib/time.ts";
import type { Log } from "../log.ts";
import type { SpikeSignal } from "../people/spikes/detector.ts";
import type { Metrics } from "./metrics.ts";

const webhookTimeoutMs = 10_000;
const webhookAttempts = 3;

export class Reports {
  constructor(
    private readonly metadata: Metadata,
    private readonly metrics: Metrics,
    private readonly log: Log,
    /** Empty: none. */
    private readonly spikeWebhook: string,
  ) {}

  take(report: Report): void {
    if (report.type === "ready") this.log.info({ cursors: report.cursors }, "the engine is ready");
    if (report.type === "applied") {
      this.metrics.countApplied(report.applied);
      this.log.debug({ ...report.applied }, "journal segments applied");
    }
    if (report.type === "flag_usage") for (const usage of report.usage) this.recordUsage(usage);
    if (report.type === "spikes") for (const spike of report.spikes) this.takeSpike(spike);
  }

  private recordUsage({ projectId, calls, views }: ProjectUsage): void {
    try {
      recordFirstEvent(this.metadata, projectId);
      recordFlagCalls(
        this.metadata,
        projectId,
        calls.map(({ key, atMicros }) => ({ key, at: new Date(atMicros / 1_000) })),
      );
      recordFeatureViews(this.metadata, projectId, views);
    } catch (error) {
      // The command line may hold the store for a moment; the next events tell the same again.
      this.log.warn({ projectId, error: String(error) }, "the use of flags could not be recorded");
    }
  }

  private takeSpike(spike: SpikeSignal): void {
    this.metrics.countSpike(spike);
    this.log.warn({ ...spike }, `an event spike ${spike.kind}`);
    if (this.spikeWebhook !== "") void this.callWebhook(spike);
  }

  private async callWebhook(spike: SpikeSignal): Promise<void> {
    const body = JSON.stringify(spikeBody(spike));
    for (let attempt = 1; attempt <= webhookAttempts; attempt++) {
      try {
        const response = await fetch(this.spikeWebhook, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body,
          signal: AbortSignal.timeout(webhookTimeoutMs),
        });
        if (response.ok) return;
        this.log.warn({ attempt, status: response.status }, "the spike webhook refused a call");
      } catch (error) {
        this.log.warn({ attempt, error: String(error) }, "the spike webhook could not be called");
      }
      await Bun.sleep(1_000 * attempt);
    }
  }
}

/** The body of a call of the webhook: the shape of `GET /api/projects/:id/spikes/` with what happened. */
function spikeBody(spike: SpikeSignal) {
  return {
    type: spike.kind === "began" ? "spike_began" : "spike_ended",
    project_id: spike.projectId,
    spike: {
      id: spike.id,
      started_at: isoFromMicros(spike.startedMicros),
      ended_at: spike.endedMicros === null ? null : isoFromMicros(spike.endedMicros),
      peak_per_minute: spike.peakPerMinute,
      usual_per_minute: spike.usualPerMinute,
      events: spike.events,
      distinct_ids: spike.distinctIds.map(({ distinctId, count }) => ({ distinct_id: distinctId, count })),
    },
  };
}
