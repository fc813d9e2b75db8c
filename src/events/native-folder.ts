/** Where the executable keeps its copy of DuckDB's native library; set once, before DuckDB is loaded. */

let folder: string | undefined;

export function setNativeFolder(path: string): void {
  folder = path;
}

export function nativeFolder(): string {
  if (folder === undefined) throw new Error("setNativeFolder() must run before DuckDB is loaded.");
  return folder;
}
