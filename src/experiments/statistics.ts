/** Loads what computes results on first use: the libraries of statistics would delay the start. */
export const loadStatistics = () => import("./compute.ts");
