/** Words of the page about the server. */

import { number } from "../../lib/format.ts";

export const instance = {
  up: (since: string) => `up ${since}`,
  version: (version: string) => `version ${version}`,
  facts: { events: "Events", waiting: "Waiting", engine: "Engine", disk: "On disk", backup: "Last backup" },
  perSecond: (rate: string) => `${rate} /s`,
  restarts: (count: number) => (count === 1 ? "1 restart" : `${number(count)} restarts`),
  engineUp: "up",
  engineDown: "down",
  rebuilding: (done: number, total: number) =>
    `The event store is made again: ${number(done)} of ${number(total)}`,
  volume: (free: string, all: string) => `${free} of ${all} free`,
  stores: "Stores",
  storeNames: {
    metadata_bytes: "metadata",
    people_bytes: "people",
    events_bytes: "events",
    journal_bytes: "journal",
    quarantine_bytes: "quarantine",
    archive_bytes: "archive",
  } as Record<string, string>,
  journal: "Journal",
  lane: "Lane",
  laneColumns: { accepted: "Accepted", loaded: "Loaded", waiting: "Waiting" },
  givenUp: (first: number, last: number, lane: string) =>
    `Entries ${number(first)} to ${number(last)} of the ${lane} lane are in no archive and no backup: make a backup.`,
  quarantine: (size: string) => `${size} of unreadable data are kept aside in quarantine.`,
  doctor: "Doctor",
  runDoctor: "Run doctor",
  doctorHelp: "Looks for what is wrong with the data and the machine; changes nothing.",
  doctorOk: "Nothing is wrong.",
  doctorFound: (errors: number, warnings: number) => `${number(errors)} errors, ${number(warnings)} warnings`,
  levels: { ok: "fine", info: "note", warning: "warning", error: "error" } as Record<string, string>,
  backups: "Backups",
  backUpNow: "Back up now",
  backupsEmpty: "No backup yet",
  backupsEmptyHelp: "A backup is one verified file with everything that was acknowledged before.",
  destination: (where: string) => `Kept in ${where}`,
  next: (when: string) => `next ${when}`,
  noSchedule: "no schedule is set (--backup-schedule)",
  verified: "verified",
  columns: { made: "Made", size: "Size", events: "Events", state: "State" },
  verify: "Verify",
  download: "Download",
  restore: "Restore",
  restoreTitle: "Restore from this backup",
  restoreHelp: "Restoring stops and replaces what is there, so it is done where the server runs:",
  deleteTitle: "Delete this backup?",
  job: { create: "Making a backup", verify: "Verifying" } as Record<string, string>,
  jobDone: { create: "The backup is made and verified.", verify: "The backup can be restored." } as Record<
    string,
    string
  >,
  jobFailed: (error: string) => `It failed: ${error}`,
  warnings: "Odd events in the last 24 hours",
  noWarnings: "No event was odd in the last 24 hours.",
  warning: (type: string, count: number, project: string) =>
    `${type.replaceAll("_", " ")}: ${number(count)} in ${project}`,
  spikes: "Spikes that go on",
  spike: (peak: string, usual: string, project: string) =>
    `${peak} a minute, usually ${usual}, in ${project}`,
  metrics: "Monitoring",
  metricsHelp: "Prometheus reads this address; the rule tells when it cannot be reached.",
};
