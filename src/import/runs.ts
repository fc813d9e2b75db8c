/** What is known of an import that was sent over HTTP or runs on the command line, as it is kept and told. */

import { readFileSync } from "node:fs";
import { rejectEnding } from "./files.ts";
import type { ImportFormat } from "./map/formats.ts";
import type { ImportSummary } from "./summary.ts";

export const importStates = [
  ...["uploading", "waiting", "running", "done", "failed", "cancelled", "interrupted"],
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
  /** As `--map` takes them. */
  map: string[];
  /** As `--null` takes them. */
  nulls?: string[];
  /** As `--timezone` takes it. */
  timezone?: string;
  isLinking: boolean;
  maxRejects: number;
  isDryRun: boolean;
}

interface ImportFigures {
  records: number;
  bytes: number;
  totalBytes: number | null;
  recordsPerSecond: number;
  secondsLeft: number | null;
  rejected: number;
}

/** What a running `flagkeep import` tells the appliance that it loads into. */
export interface ImportReport {
  id: string;
  projectId: number;
  name: string;
  isDryRun: boolean;
  /** `done` and `failed` are the last word. */
  state: "running" | "done" | "failed";
  figures: ImportFigures;
}

export interface ImportRun {
  id: string;
  projectId: number;
  /** Of the file. */
  name: string;
  origin: "upload" | "command_line";
  state: ImportState;
  options: ImportOptions | null;
  /** Id of the user; null for the command line. */
  createdBy: number | null;
  /** ISO 8601. */
  createdAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  /** What was received of the file. */
  receivedBytes: number;
  figures: ImportFigures;
  error: string | null;
  summary: Omit<ImportSummary, "reject_files"> | null;
}

export const noFigures = (): ImportFigures => ({
  ...{ records: 0, bytes: 0, totalBytes: null, recordsPerSecond: 0, secondsLeft: null, rejected: 0 },
});

/** Of what `flagkeep import --json` prints. */
export function summaryOf(output: string): ImportRun["summary"] {
  const { reject_files: _, ...summary } = JSON.parse(output) as ImportSummary;
  return summary;
}

/** @returns undefined where there is none that can be read. */
export function readRun(path: string): ImportRun | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as ImportRun;
  } catch {
    return undefined;
  }
}

const nameLengthMax = 100;

/** A name that can stand in a folder of ours: its ending tells people, the content tells the import. */
export function fileNameOf(name: string): string {
  const plain = name
    .slice(name.search(/[^/\\]*$/))
    .replace(/[^A-Za-z0-9._-]/g, "_")
    .replace(/^[.-]+/, "")
    .slice(-nameLengthMax);
  return plain === "" || plain.endsWith(rejectEnding) ? "upload" : plain;
}
