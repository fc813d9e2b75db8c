/**
 * Judges a run from what its clients wrote down and what the server gave out at the end, and from nothing else.
 *
 * `bun test/kill-test/checker.ts LOG STORED` prints the verdict and ends with 1 when a promise was broken. Both files are
 * NDJSON: a line of the log is a `Sent`, a line of the other a `Stored`, in the order in which the server stored them.
 */

import { readFileSync } from "node:fs";

/** What a client knows of one request, once it knows it. */
export interface Sent {
  /** Whose requests follow each other. */
  sender: string;
  historical: boolean;
  /** `acknowledged`: the server has said that it has them. `unknown`: it did not answer, or said no. */
  outcome: "acknowledged" | "unknown";
  events: Event[];
}

export interface Event {
  id: string;
  /** Counts up within a sender. */
  number: number;
  /** Of what else it holds. */
  digest: string;
}

export interface Stored extends Event {
  sender: string;
}

/** How often each promise was broken, and the first ids. */
export interface Report {
  acknowledged: number;
  stored: number;
  lost: Finding;
  doubled: Finding;
  /** Stored, but no one has sent them. */
  invented: Finding;
  /** Stored with other contents, or for another sender. */
  changed: Finding;
  /** History that is not in the order in which its sender was acknowledged. */
  disordered: Finding;
}

export interface Finding {
  count: number;
  ids: string[];
}

const promises = ["lost", "doubled", "invented", "changed", "disordered"] as const;
const shownIds = 10;

export function judge(log: Iterable<Sent>, stored: Iterable<Stored>): Report {
  const report: Report = {
    acknowledged: 0,
    stored: 0,
    lost: none(),
    doubled: none(),
    invented: none(),
    changed: none(),
    disordered: none(),
  };
  const sent = new Map<string, Event & { sender: string; isAcknowledged: boolean; isHistory: boolean }>();
  for (const { sender, historical, outcome, events } of log) {
    for (const event of events) {
      const isAcknowledged = outcome === "acknowledged" || sent.get(event.id)?.isAcknowledged === true;
      sent.set(event.id, { ...event, sender, isAcknowledged, isHistory: historical });
    }
  }
  const seen = new Set<string>();
  const lastSeqs = new Map<string, number>();
  for (const event of stored) {
    report.stored += 1;
    const original = sent.get(event.id);
    if (seen.has(event.id)) note(report.doubled, event.id);
    seen.add(event.id);
    if (original === undefined) {
      note(report.invented, event.id);
      continue;
    }
    const { sender, number, digest, isHistory, isAcknowledged } = original;
    if (sender !== event.sender || number !== event.number || digest !== event.digest)
      note(report.changed, event.id);
    if (!isHistory || !isAcknowledged) continue;
    if (number < (lastSeqs.get(sender) ?? Number.NEGATIVE_INFINITY)) note(report.disordered, event.id);
    else lastSeqs.set(sender, number);
  }
  for (const { id, isAcknowledged } of sent.values()) {
    if (!isAcknowledged) continue;
    report.acknowledged += 1;
    if (!seen.has(id)) note(report.lost, id);
  }
  return report;
}

/** Whether every promise was kept. */
export const isClean = (report: Report): boolean => promises.every((name) => report[name].count === 0);

export function described(report: Report): string {
  const lines = [`${report.acknowledged} events were acknowledged, ${report.stored} are stored.`];
  for (const name of promises) {
    const { count, ids } = report[name];
    lines.push(
      `${name.padEnd(11)} ${count}${count === 0 ? "" : `: ${ids.join(", ")}${count > ids.length ? ", …" : ""}`}`,
    );
  }
  return lines.join("\n");
}

function none(): Finding {
  return { count: 0, ids: [] };
}

function note(finding: Finding, id: string): void {
  finding.count += 1;
  if (finding.ids.length < shownIds) finding.ids.push(id);
}

function* getLines<Line>(path: string): Generator<Line> {
  for (const line of readFileSync(path, "utf8").split("\n")) if (line !== "") yield JSON.parse(line) as Line;
}

/** The verdict on two files. */
export const judgeFiles = (log: string, stored: string): Report =>
  judge(getLines<Sent>(log), getLines<Stored>(stored));

if (import.meta.main) {
  const [log, stored] = process.argv.slice(2);
  if (log === undefined || stored === undefined) {
    console.error("bun test/kill-test/checker.ts LOG STORED");
    process.exit(2);
  }
  const report = judgeFiles(log, stored);
  console.log(described(report));
  process.exit(isClean(report) ? 0 : 1);
}
