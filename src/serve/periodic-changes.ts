/** Automatic changes of metadata: scheduled changes of flags, and the use of replaced keys. */

import type { Metadata } from "../accounts/metadata.ts";
import { hasDueChanges, runScheduledChanges } from "../flags/api/pending-changes.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import type { Log } from "../log.ts";
import type { SqliteCorruption } from "../operate/sqlite-corruption.ts";

/** Maximum delay of a scheduled change. */
const scheduledEveryMs = 2_000;

/** Usage counts of replaced keys that a crash may lose, as a time span. */
const keyUsesEveryMs = 10_000;

interface ChangeDeps {
  metadata: Metadata;
  payloads: PayloadCipher;
  corruption: SqliteCorruption;
  log: Pick<Log, "error" | "warn">;
  /** Changes the metadata, in a cluster for all nodes. */
  together<Result>(work: (now?: Date) => Result): Promise<Result>;
}

export class PeriodicChanges {
  private readonly tasks = new PeriodicTasks((error) => this.deps.corruption.record(error));

  constructor(private readonly deps: ChangeDeps) {}

  start(): void {
    this.tasks.every(scheduledEveryMs, () => this.makeScheduledChanges());
    this.tasks.every(keyUsesEveryMs, () => this.storeKeyUses());
  }

  /** Stores what is not stored yet. */
  stop(): void {
    this.tasks.stop();
    this.deps.metadata.projects.storeUses();
  }

  private async makeScheduledChanges(): Promise<void> {
    const { metadata, payloads, corruption, log } = this.deps;
    try {
      const writing = { metadata, payloads };
      if (hasDueChanges(writing)) await this.deps.together((now) => runScheduledChanges(writing, now));
    } catch (error) {
      corruption.record(error);
      // They stay due and are retried at the next interval.
      log.error({ error: String(error) }, "failed to apply scheduled changes");
    }
  }

  private async storeKeyUses(): Promise<void> {
    const { metadata, corruption, log } = this.deps;
    try {
      const { projects } = metadata;
      if (projects.hasUses) await this.deps.together(() => projects.storeUses());
    } catch (error) {
      corruption.record(error);
      log.warn({ error: String(error) }, "failed to store the usage of previous project keys");
    }
  }
}
