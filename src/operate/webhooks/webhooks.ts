/** Webhooks of the running server: sends what is queued, and queues what happens outside of the metadata. */

import { PeriodicTasks } from "../../lib/concurrency.ts";
import type { Log } from "../../log.ts";
import type { IngestionReader } from "../../persons/ingestion-reader.ts";
import type { SpikeSignal } from "../../persons/spike-detector.ts";
import type { SqliteCorruption } from "../sqlite-corruption.ts";
import { type SenderDeps, WebhookSender } from "./sender.ts";
import {
  dueSummaries,
  hasNewBackupFailure,
  newWarnings,
  queueBackupFailure,
  queueSpike,
  queueSummaries,
  queueWarnings,
  type ReadWeeklyWeb,
  recentWarnings,
  weeklyFigures,
} from "./sources.ts";

/** Maximum delay of a failed backup or a weekly summary. */
const checkIntervalMs = 10_000;

export interface WebhooksDeps extends SenderDeps {
  dataDir: string;
  ingestion: IngestionReader;
  /** Figures of web analytics for weekly summaries. */
  readWeb: ReadWeeklyWeb;
  corruption: Pick<SqliteCorruption, "record">;
  log: Log;
}

export class Webhooks {
  private readonly sender: WebhookSender;
  private readonly tasks: PeriodicTasks;

  constructor(private readonly deps: WebhooksDeps) {
    this.sender = new WebhookSender(deps);
    this.tasks = new PeriodicTasks((error) => {
      deps.corruption.record(error);
      deps.log.warn({ error: String(error) }, "failed to queue webhooks");
    });
  }

  start(): void {
    this.sender.start();
    this.tasks.every(checkIntervalMs, () => this.check());
  }

  /** Queues a spike; failures are logged. */
  takeSpike(spike: SpikeSignal): void {
    const { together, metadata, log } = this.deps;
    together(() => queueSpike(metadata, spike, new Date())).catch((error: unknown) =>
      log.warn({ error: String(error) }, "failed to queue webhooks of a spike"),
    );
  }

  async stop(): Promise<void> {
    this.tasks.stop();
    await this.sender.stop();
  }

  private async check(): Promise<void> {
    const { isActive, metadata, dataDir, together } = this.deps;
    const now = new Date();
    if (!isActive()) return;
    if (hasNewBackupFailure(metadata, dataDir))
      await together(() => queueBackupFailure(metadata, dataDir, now));
    const warnings = await recentWarnings(this.deps, now);
    // Checked again with the lock of the metadata: other nodes queue the same.
    if (newWarnings(metadata, warnings, now).length > 0)
      await together(() => queueWarnings(metadata, warnings, now));
    const due = dueSummaries(metadata, now);
    if (due.length === 0) return;
    const weeks = await weeklyFigures(due, this.deps);
    await together(() => queueSummaries(metadata, weeks, now));
  }
}
