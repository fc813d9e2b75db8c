/** Files as which results are sent, by the header `Accept`. */

export const fileTypes = { csv: "text/csv", parquet: "application/vnd.apache.parquet" } as const;

/** The requested file type with the highest preference; undefined for JSON. */
export function getFileFormat(request: Request): keyof typeof fileTypes | undefined {
  for (const range of (request.headers.get("accept") ?? "").split(",")) {
    const type = range.split(";", 1)[0]!.trim().toLowerCase();
    if (type === fileTypes.csv) return "csv";
    if (type === fileTypes.parquet) return "parquet";
    if (["*/*", "application/*", "application/json"].includes(type)) return undefined;
  }
  return undefined;
}
