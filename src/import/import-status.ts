/** Status of an import that was uploaded over HTTP or runs on the command line, as it is stored and reported. */

import { readFileSync } from "node:fs";
import { rejectEnding } from "./files.ts";
import type { ImportFormat } from "./map/formats.ts";
import type { ImportSummary } from "./summary.ts";

export const importStates = [
  "uploading",
  "waiting",
  "running",
  "done",
  "failed",
  "cancelled",
  "interrupted",
] as const;
export type ImportState =
  | "uploading"
  | "waiting"
  | "running"
  | "done"
  | "failed"
  | "cancelled"
  | "interrupted";

export interface ImportOptions {
  format: ImportFormat;
  /** As in `--map`. */
  map: string[];
  /** As in `--null`. */
  nulls?: string[];
  /** As in `--timezone`. */
  timezone?: string;
  isLinking: boolean;
  maxRejects: number;
  isDryRun: boolean;
}

interface ImportCounts {
  records: number;
  bytes: number;
  totalBytes: number | null;
  recordsPerSecond: number;
  secondsLeft: number | null;
  rejected: number;
}

/** Progress report of a running `flagkeep import` to its server. */
export interface ImportReport {
  id: string;
  projectId: number;
  name: string;
  isDryRun: boolean;
  /** `done` and `failed` are final. */
  state: "running" | "done" | "failed";
  figures: ImportCounts;
}

export interface ImportRun {
  id: string;
  projectId: number;
  /** Name of the file. */
  name: string;
  origin: "upload" | "command_line";
  state: ImportState;
  options: ImportOptions | null;
  /** ID of the user; null for the command line. */
  createdBy: number | null;
  /** ISO 8601. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  /** Received bytes of the file. */
  receivedBytes: number;
  figures: ImportCounts;
  error: string | null;
  summary: Omit<ImportSummary, "reject_files"> | null;
}

export const emptyCounts = (): ImportCounts => ({
  records: 0,
  bytes: 0,
  totalBytes: null,
  recordsPerSecond: 0,
  secondsLeft: null,
  rejected: 0,
});

/** Parses the output of `flagkeep import --json`. */
export function getSummary(output: string): ImportRun["summary"] {
  const { reject_files: _, ...summary } = JSON.parse(output) as ImportSummary;
  return summary;
}

/** @returns undefined when it is missing or unreadable. */
export function readRun(path: string): ImportRun | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ImportRun;
  } catch {
    return undefined;
  }
}

const nameLengthMax = 100;

/** A safe file name: its extension is only informative, import detects the format from the content. */
export function getFileName(name: string): string {
  const plain = name
    .slice(name.search(/[^/\\]*$/))
    .replace(/[^A-Za-z0-9._-]/g, "_")
    .replace(/^[.-]+/, "")
    .slice(-nameLengthMax);
  return plain === "" || plain.endsWith(rejectEnding) ? "upload" : plain;
}
