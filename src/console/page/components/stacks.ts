/** Positions of stacked bars: positive values grow upwards from zero, negative ones downwards. */

export interface Band {
  from: number;
  to: number;
}

/**
 * @param series values of each series
 * @param stacked indices of the series that are stacked, from the zero line outwards; others have empty bands
 * @returns the band of each series at each position
 */
export function stackBands(series: readonly (readonly number[])[], stacked: readonly number[]): Band[][] {
  const length = Math.max(0, ...series.map((values) => values.length));
  const bands = series.map(() => Array.from({ length }, (): Band => ({ from: 0, to: 0 })));
  for (let position = 0; position < length; position++) {
    let above = 0;
    let below = 0;
    for (const index of stacked) {
      const value = series[index]![position] ?? 0;
      const from = value < 0 ? below : above;
      if (value < 0) below += value;
      else above += value;
      bands[index]![position] = { from, to: from + value };
    }
  }
  return bands;
}
