/** Gives the properties that are asked for their columns, in the pauses of loading and answering. */

import type { EventDatabase } from "../events/duckdb/database.ts";
import type { EventLoader } from "../events/duckdb/loader.ts";
import type { PromotedProperty } from "../events/duckdb/property-columns.ts";
import { Promotion, promotionRules } from "../events/promotion.ts";

export interface PropertyWorkerSettings {
  /** Columns at most; 0 drops all there are. */
  columnsMax: number;
  /** A question that was asked goes on for so long at most. */
  queryTimeoutMs: number;
  /** Whether there is something more urgent, such as events that wait. */
  isBusy: () => boolean;
  hasRoom: () => Promise<boolean>;
}

export interface PropertyWorkerHooks {
  onChange: (promoted: PromotedProperty[]) => void;
  /** It is tried again later. */
  onTrouble: (error: unknown) => void;
}

const idleMs = 1_000;
/** After a failure: another writer was in the way, or memory was short. */
const troubleMs = 10_000;
/** Beside work that is more urgent a piece is followed by so many times its own duration without one, else by once that. */
const busyPauses = 5;
/** What was filled is in memory until a checkpoint. */
const piecesBetweenCheckpoints = 24;

export class PropertyWorker {
  private readonly promotion: Promotion;
  private pieces = 0;
  private told = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private working: Promise<void> = Promise.resolve();
  private isStopped = false;

  constructor(
    private readonly database: EventDatabase,
    private readonly loader: EventLoader,
    private readonly settings: PropertyWorkerSettings,
    private readonly hooks: PropertyWorkerHooks,
    rules = promotionRules,
  ) {
    const columns = loader.propertyColumns;
    this.promotion = new Promotion(
      {
        get promoted() {
          return columns.list().map(({ name }) => name);
        },
        get isFilling() {
          return columns.isFilling;
        },
        rows: () => this.rows(),
        add: (names) => this.write((connection) => columns.add(connection, names)),
        // Two times the limit: a question waits for its turn, too.
        retire: async (name) => columns.retire(name, performance.now() + 2 * this.settings.queryTimeoutMs),
        fillPiece: () => this.write((connection) => columns.fillPiece(connection)),
      },
      { ...rules, columnsMax: settings.columnsMax },
    );
    this.wait(idleMs);
  }

  /** Somebody's question named these properties. */
  note(names: Iterable<string>): void {
    if (this.settings.columnsMax > 0) this.promotion.note(names);
  }

  /** Resolves when nothing is done any more. */
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
    const began = performance.now();
    try {
      const hasMore = (await this.settings.hasRoom()) && (await this.step());
      const tookMs = performance.now() - began;
      this.wait(hasMore ? tookMs * (this.settings.isBusy() ? busyPauses : 1) : idleMs);
    } catch (error) {
      this.hooks.onTrouble(error);
      this.wait(troubleMs);
    }
  }

  private async step(): Promise<boolean> {
    const { propertyColumns } = this.loader;
    await this.write((connection) => propertyColumns.dropRetired(connection));
    const wasFilling = propertyColumns.isFilling;
    const hasMore = await this.promotion.step();
    if (wasFilling) this.pieces += 1;
    if (this.pieces >= piecesBetweenCheckpoints || (wasFilling && !propertyColumns.isFilling)) {
      if (await this.loader.checkpoint()) this.pieces = 0;
    }
    this.tell();
    return hasMore;
  }

  private tell(): void {
    const promoted = this.loader.propertyColumns.list().map(({ name, filled }) => {
      return { name, filled: Math.floor(filled * 100) / 100 };
    });
    const text = JSON.stringify(promoted);
    if (text === this.told) return;
    this.told = text;
    this.hooks.onChange(promoted);
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

  /** On a connection of its own, between two loadings. */
  private async write<Result>(
    work: (connection: Awaited<ReturnType<EventDatabase["connect"]>>) => Promise<Result>,
  ): Promise<Result> {
    return await this.loader.inTurn(async () => {
      const connection = await this.database.connect();
      try {
        return await this.loader.room.loadInRoom(() => work(connection));
      } finally {
        connection.closeSync();
      }
    });
  }
}
