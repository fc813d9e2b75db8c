/** Loads what computes results on first use: the libraries of statistics would delay the start. */
export const loadStatistics = () => import("./compute.ts");

/** Loads what computes results by day on first use. */
export const loadSeries = () => import("./series.ts");
