/** Number of rows to read per batch, when most rows are short and some have many megabytes. */

const growth = 4;

/** Starts with one row, grows quickly, and follows the weight of the last batch. */
export class AdaptiveBatchSize {
  /**
   * @param weight target weight of a batch.
   * @param max    maximum number of rows.
   */
  constructor(
    private readonly weight: number,
    private readonly max: number,
    public rows = 1,
  ) {}

  /** Adapts to the weight of the last batch. */
  follow(weight: number, rows: number): void {
    const fitting = weight === 0 ? this.max : Math.floor((this.weight * rows) / weight);
    this.rows = Math.max(1, Math.min(fitting, this.rows * growth, this.max));
  }
}
