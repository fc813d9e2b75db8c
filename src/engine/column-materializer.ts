/** Materializes frequently queried properties as columns, while loading and queries are idle. */

import type { EventDatabase } from "../events/duckdb/database.ts";
import type { EventLoader } from "../events/duckdb/loader.ts";
import type { MaterializedProperty } from "../events/duckdb/property-columns.ts";
import { MaterializationPolicy, materializationRules } from "../events/materialized-columns.ts";

export interface ColumnMaterializerOptions {
  /** Maximum number of columns; 0 drops all. */
  columnsMax: number;
  /** Maximum duration of a query. */
  queryTimeoutMs: number;
  /** Whether more urgent work exists, such as pending events. */
  isBusy: () => boolean;
  hasSpace: () => Promise<boolean>;
  /** Properties to materialize regardless of their use; read repeatedly. */
  pinned?: () => readonly string[];
}

export interface ColumnMaterializerCallbacks {
  onChange: (promoted: MaterializedProperty[]) => void;
  /** The error is not fatal; the work is retried later. */
  onError: (error: unknown) => void;
}

const idleMs = 1_000;
/** How often the pinned properties are determined. */
const pinsMs = 10_000;
/** Delay after an error: another writer was active, or memory was short. */
const problemMs = 10_000;
/** Pause after a chunk as a multiple of its duration while busy; otherwise the multiple is 1. */
const busyPauses = 5;
/** Filled values stay in memory until a checkpoint. */
const stepsBetweenCheckpoints = 24;

export class ColumnMaterializer {
  private readonly promotion: MaterializationPolicy;
  private chunks = 0;
  private pinnedAt = Number.NEGATIVE_INFINITY;
  private lastReported = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private working: Promise<void> = Promise.resolve();
  private isStopped = false;

  constructor(
    private readonly database: EventDatabase,
    private readonly loader: EventLoader,
    private readonly options: ColumnMaterializerOptions,
    private readonly callbacks: ColumnMaterializerCallbacks,
    rules = materializationRules,
  ) {
    const columns = loader.propertyColumns;
    this.promotion = new MaterializationPolicy(
      {
        get promoted() {
          return columns.list().map(({ name }) => name);
        },
        get isFilling() {
          return columns.isFilling;
        },
        rows: () => this.rows(),
        add: (names) => this.write((connection) => columns.add(connection, names)),
        // Twice the limit: queries also wait for a slot.
        retire: async (name) => columns.retire(name, performance.now() + 2 * this.options.queryTimeoutMs),
        fillChunk: () => this.write((connection) => columns.fillChunk(connection)),
      },
      { ...rules, columnsMax: options.columnsMax },
    );
    this.wait(idleMs);
  }

  /** A user's query has read these properties. */
  recordUse(names: Iterable<string>): void {
    if (this.options.columnsMax > 0) this.promotion.recordUse(names);
  }

  /** Resolves when all work has ended. */
  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.working;
  }

  private wait(ms: number): void {
    if (this.isStopped) return;
    this.timer = setTimeout(() => {
      this.working = this.work();
    }, ms);
    this.timer.unref();
  }

  private async work(): Promise<void> {
    const started = performance.now();
    try {
      const hasMore = (await this.options.hasSpace()) && (await this.step());
      const durationMs = performance.now() - started;
      this.wait(hasMore ? durationMs * (this.options.isBusy() ? busyPauses : 1) : idleMs);
    } catch (error) {
      this.callbacks.onError(error);
      this.wait(problemMs);
    }
  }

  private async step(): Promise<boolean> {
    const { propertyColumns } = this.loader;
    await this.write((connection) => propertyColumns.dropRetired(connection));
    this.pin();
    const wasFilling = propertyColumns.isFilling;
    const hasMore = await this.promotion.step();
    if (wasFilling) this.chunks += 1;
    if (this.chunks >= stepsBetweenCheckpoints || (wasFilling && !propertyColumns.isFilling)) {
      if (await this.loader.checkpoint()) this.chunks = 0;
    }
    this.report();
    return hasMore;
  }

  private pin(): void {
    const { pinned, columnsMax } = this.options;
    if (pinned === undefined || columnsMax === 0 || performance.now() - this.pinnedAt < pinsMs) return;
    this.pinnedAt = performance.now();
    this.promotion.pin(pinned());
  }

  private report(): void {
    const promoted = this.loader.propertyColumns.list().map(({ name, filled }) => {
      return { name, filled: Math.floor(filled * 100) / 100 };
    });
    const text = JSON.stringify(promoted);
    if (text === this.lastReported) return;
    this.lastReported = text;
    this.callbacks.onChange(promoted);
  }

  private async rows(): Promise<number> {
    const connection = await this.database.connect();
    try {
      const rows = await connection.runAndReadAll("SELECT count(*)::DOUBLE FROM events");
      return rows.getRows()[0]![0] as number;
    } finally {
      connection.closeSync();
    }
  }

  /** Runs on a separate connection, between two loads. */
  private async write<Result>(
    work: (connection: Awaited<ReturnType<EventDatabase["connect"]>>) => Promise<Result>,
  ): Promise<Result> {
    return await this.loader.inTurn(async () => {
      const connection = await this.database.connect();
      try {
        return await this.loader.budget.loadWithinBudget(() => work(connection));
      } finally {
        connection.closeSync();
      }
    });
  }
}
