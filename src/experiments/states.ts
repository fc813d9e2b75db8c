/** States of an experiment and the transitions between them (contract: experiments 1.3). */

import { InvalidFieldError } from "../lib/errors.ts";

export const experimentStatuses = ["draft", "running", "paused", "stopped"] as const;
export type ExperimentStatus = (typeof experimentStatuses)[number];

/** Computed, never stored: switching a flag off by hand pauses its experiment. */
export function getStatus(
  { startDate, endDate }: { startDate: Date | null; endDate: Date | null },
  isFlagActive: boolean,
): ExperimentStatus {
  if (startDate === null) return "draft";
  if (endDate !== null) return "stopped";
  return isFlagActive ? "running" : "paused";
}

export type Transition =
  | "launch"
  | "pause"
  | "resume"
  | "end"
  | "ship_variant"
  | "reset"
  | "archive"
  | "unarchive";

/** States from which a transition is possible, and its past participle for messages. */
const transitions: Record<Transition, { from: readonly ExperimentStatus[]; done: string }> = {
  launch: { from: ["draft"], done: "launched" },
  pause: { from: ["running"], done: "paused" },
  resume: { from: ["paused"], done: "resumed" },
  end: { from: ["running", "paused"], done: "ended" },
  ship_variant: { from: ["running", "paused", "stopped"], done: "shipped" },
  reset: { from: ["running", "paused", "stopped"], done: "reset" },
  archive: { from: ["stopped"], done: "archived" },
  unarchive: { from: ["stopped"], done: "unarchived" },
};

/** What must happen before, by the state an experiment is in. */
const needed: Record<ExperimentStatus, string> = {
  draft: "must be launched",
  running: "must be ended",
  paused: "must be resumed or ended",
  stopped: "must be reset",
};

/** @throws {InvalidFieldError} `invalid_transition`, with the state in the message. */
export function assertTransition(
  transition: Transition,
  status: ExperimentStatus,
  { archived }: { archived: boolean },
): void {
  const { from, done } = transitions[transition];
  if (transition === "archive" && archived) throw invalid("Experiment is already archived.");
  if (transition === "unarchive" && !archived) throw invalid("Experiment is not archived.");
  if (from.includes(status)) return;
  if (transition === "launch" && status !== "stopped")
    throw invalid(`Experiment has already been launched; it is ${status}.`);
  if (transition === "pause" && status === "paused") throw invalid("Experiment is already paused.");
  if (transition === "resume" && status === "running")
    throw invalid("Experiment must be paused before it can be resumed; it is running.");
  if (transition === "end" && status === "stopped")
    throw invalid("Experiment has already ended; it is stopped.");
  throw invalid(`Experiment ${needed[status]} before it can be ${done}; it is ${status}.`);
}

const invalid = (detail: string) => new InvalidFieldError(null, "invalid_transition", detail);
