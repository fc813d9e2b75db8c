/** Dependencies of the console's instance page: they run this executable's commands. */

import { removeBackups } from "../backup/chunks.ts";
import { getDestination } from "../backup/destination.ts";
import { getS3Settings } from "../backup/s3-access.ts";
import { backupArguments, creationArguments } from "../backup/schedule.ts";
import { withBackupLock } from "../backup/work-folder.ts";
import { backupDestination } from "../config/read.ts";
import { type Config, environmentName } from "../config/settings.ts";
import { clickHouseUrl, postgresUrl } from "../lib/store-urls.ts";
import { shellWord } from "../lib/terminal-text.ts";
import type { InstanceDeps } from "../operate/api/instance.ts";
import { Jobs, toJson } from "../operate/jobs.ts";

/** @param executable how to start this executable. */
export function instanceDeps(
  config: Config,
  executable: readonly string[],
): Pick<InstanceDeps, "runChecks" | "jobs" | "backups"> {
  const common = backupArguments(config);
  const address = ["--host", config.host, "--port", String(config.port)];
  const reserve = ["--journal-reserve", String(config["journal-reserve"])];
  const eventsAt = config["events-url"];
  const eventsSettings: Record<string, string> =
    eventsAt === null
      ? {}
      : {
          [environmentName("events-url")]: clickHouseUrl(eventsAt),
          [environmentName("events-password-file")]: config["events-password-file"],
        };
  const sharedAt = config["postgres-url"];
  const sharedSettings: Record<string, string> =
    sharedAt === null
      ? {}
      : {
          [environmentName("postgres-url")]: postgresUrl(sharedAt),
          [environmentName("postgres-password-file")]: config["postgres-password-file"],
        };
  let examination: Promise<unknown> | undefined;
  return {
    // Concurrent callers share one run.
    runChecks: () => {
      examination ??= toJson(
        [...executable, "doctor", "--json", "--data-dir", config["data-dir"], ...address, ...reserve],
        { ...eventsSettings, ...sharedSettings },
      ).finally(() => {
        examination = undefined;
      });
      return examination as ReturnType<InstanceDeps["runChecks"]>;
    },
    jobs: new Jobs(),
    backups: {
      remove: (destination, name) =>
        withBackupLock(config["data-dir"], () => removeBackups(destination, [name])),
      destination: () => getDestination(backupDestination(config), getS3Settings(config)),
      schedule: config["backup-schedule"],
      createCommand: [
        ...executable,
        "backup",
        "create",
        backupDestination(config),
        "--progress-lines",
        ...common,
        ...creationArguments(config),
      ],
      verifyCommand: (file) => [...executable, "backup", "verify", file, "--progress-lines", ...common],
      restoreCommand: (file) =>
        `flagkeep backup restore ${shellWord(file)} --data-dir ${shellWord(config["data-dir"])} --force`,
    },
  };
}
