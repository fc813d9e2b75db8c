/** How many rows to read at once, when most rows are short and some are of many megabytes. */

const growth = 4;

/** Begins with one row, grows quickly, and follows the weight of what was read last. */
export class Portion {
  /**
   * @param weight of a portion, as it should be.
   * @param max    rows.
   */
  constructor(
    private readonly weight: number,
    private readonly max: number,
    public rows = 1,
  ) {}

  /** Takes in what the last portion weighed. */
  follow(weight: number, rows: number): void {
    const fitting = weight === 0 ? this.max : Math.floor((this.weight * rows) / weight);
    this.rows = Math.max(1, Math.min(fitting, this.rows * growth, this.max));
  }
}
