/** Backups of a server over its API, for its operators: the server's settings apply. */

import type { Command } from "commander";
import { AppError } from "../../src/lib/errors.ts";
import { InvalidSettingError } from "../../src/lib/setting-types.ts";
import type { BackupJob, Backups } from "../../src/operate/api/backups.ts";
import { getServer, type Server } from "../operations/server.ts";
import { withProgress } from "./backup-common.ts";

/** Interval between requests for the progress of a job. */
const pollMs = 500;
/** A server that does not respond for longer is given up; it continues its job. */
const silentMsMax = 60_000;

/** Options that apply to a server. */
const serverOptions = ["--url", "--key", "--json", "--progress-lines"];

/** The server failed to create or verify a backup. */
class BackupJobError extends AppError {
  readonly code = "backup_job_failed";
}

/**
 * The server that a backup command is called for; undefined for a data directory.
 *
 * @param dest the destination argument.
 * @throws {InvalidSettingError} a destination, or an option that only a data directory has.
 */
export function getBackupServer(command: Command, dest?: string): Server | undefined {
  const server = getServer(command.opts());
  if (server === undefined) return undefined;
  const given = command.options.find(
    (option) =>
      !serverOptions.includes(option.long!) && command.getOptionValueSource(option.attributeName()) === "cli",
  );
  const local = dest === undefined ? given?.long : "A destination";
  if (local !== undefined)
    throw new InvalidSettingError(`${local} needs the data directory: on a server, its settings apply.`);
  return server;
}

/** The backups of a server's destination. */
export async function listBackupsOnServer(server: Server): Promise<Backups> {
  const { getFromInstance } = await import("../operations/remote.ts");
  return (await getFromInstance(server, "/backups")) as Backups;
}

/**
 * The name of a backup at a server's destination.
 *
 * @param backup the name, or the file as `backup list` prints it.
 * @throws {InvalidSettingError} a file in another folder or bucket.
 */
export async function nameOnServer(server: Server, backup: string): Promise<string> {
  const end = backup.lastIndexOf("/");
  if (end === -1) return backup;
  const { destination } = await listBackupsOnServer(server);
  if (backup.slice(0, end) === destination) return backup.slice(end + 1);
  throw new InvalidSettingError(
    `${backup} is not at the server's destination, ${destination}. Use a name that \`flagkeep backup list\` prints.`,
  );
}

/** Starts a backup operation on a server and waits for its end. @returns what the same command prints with `--json` there. */
export async function runBackupJob<Result>(
  server: Server,
  path: string,
  options: { json?: true; progressLines?: true },
): Promise<Result> {
  const { getFromInstance, postToInstance, RemoteServerError } = await import("../operations/remote.ts");
  let job = (await postToInstance(server, path)) as BackupJob;
  return await withProgress(options, async (progress) => {
    let respondedAt = performance.now();
    while (job.state === "running") {
      if (job.step !== null) progress.show(job.step, job.done, job.total);
      await Bun.sleep(pollMs);
      try {
        job = (await getFromInstance(server, `/backups/jobs/${job.id}`)) as BackupJob;
        respondedAt = performance.now();
      } catch (error) {
        const isSilent = performance.now() - respondedAt > silentMsMax;
        if (!(error instanceof RemoteServerError) || isSilent) throw error;
      }
    }
    if (job.state === "failed") throw new BackupJobError(job.error ?? "The server does not say why.");
    return job.result as Result;
  });
}
