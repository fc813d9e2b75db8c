/** Handles the engine's reports: flag metadata, metrics, spike webhook, log. */

import type { Metadata } from "../accounts/metadata.ts";
import { recordFirstEvent } from "../accounts/projects.ts";
import type { Report } from "../engine/messages.ts";
import type { ProjectUsage } from "../engine/pipeline/flag-usage.ts";
import { recordFeatureViews, recordFlagCalls } from "../flags/store/flag-usage.ts";
import type { Log } from "../log.ts";
import { type SpikeSignal, spikeJson } from "../persons/spike-detector.ts";
import type { Metrics } from "./metrics.ts";

const webhookTimeoutMs = 10_000;
const webhookAttempts = 3;

export class EngineReportHandler {
  constructor(
    private readonly metadata: Metadata,
    private readonly metrics: Metrics,
    private readonly log: Log,
    /** URL; empty: none. */
    private readonly spikeWebhook: string,
    /** Queues webhooks of projects. */
    private readonly onSpike: (spike: SpikeSignal) => void,
  ) {}

  take(report: Report): void {
    if (report.type === "ready") this.log.info({ cursors: report.cursors }, "engine ready");
    if (report.type === "applied") {
      this.metrics.countApplied(report.applied);
      this.log.debug({ ...report.applied }, "journal segments applied");
    }
    if (report.type === "flag_usage") for (const usage of report.usage) this.recordUsage(usage);
    if (report.type === "spikes") for (const spike of report.spikes) this.handleSpike(spike);
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
      // A CLI command may hold the store for a moment; the next events report the same usage again.
      this.log.warn({ projectId, error: String(error) }, "failed to record flag usage");
    }
  }

  private handleSpike(spike: SpikeSignal): void {
    this.metrics.countSpike(spike);
    this.log.warn({ ...spike }, `event spike ${spike.kind}`);
    this.onSpike(spike);
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
        this.log.warn({ attempt, status: response.status }, "the spike webhook rejected a call");
      } catch (error) {
        this.log.warn({ attempt, error: String(error) }, "failed to call the spike webhook");
      }
      await Bun.sleep(1_000 * attempt);
    }
  }
}

/** Webhook body: the shape of `GET /api/projects/:id/spikes/` plus what happened. */
function spikeBody(spike: SpikeSignal) {
  return {
    type: spike.kind === "began" ? "spike_began" : "spike_ended",
    project_id: spike.projectId,
    spike: spikeJson(spike),
  };
}
