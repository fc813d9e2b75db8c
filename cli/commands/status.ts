import { type TObject, TypeGuard } from "@sinclair/typebox";
import { Command } from "commander";
import { describeHeldBack } from "../../src/cluster/safe-number.ts";
import { describeSkipped } from "../../src/journal/skipped-entries.ts";
import { AppError } from "../../src/lib/errors.ts";
import { readHolder } from "../../src/lock.ts";
import type { RetentionState } from "../../src/operate/retention.ts";
import { currentStatus } from "../../src/operate/status.ts";
import { Status } from "../../src/operate/status-schema.ts";
import { paths } from "../../src/paths.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { formatBytes, formatDuration, print, printJson, printTable, run, withJson } from "../output.ts";
import { getDataDir, withSettings } from "../settings.ts";
import { assertInitialized } from "../stores.ts";

/** The response has fewer members than this version shows. */
class VersionMismatchError extends AppError {
  readonly code = "other_version";
  override readonly hint = "Restart it with the same version as this command.";
  constructor({ state, version }: Partial<Status>) {
    super(`The running server (${state}) has another version (${version}) with a different status format.`);
  }
}

function describeCache(cache: NonNullable<NonNullable<Status["shared"]>["person_cache"]>): string {
  const { entries, bytes, bytes_max, hits, misses, feed_age_seconds: age } = cache;
  const found = hits + misses === 0 ? "" : `, ${Math.floor((100 * hits) / (hits + misses))} % found`;
  const late = age < 2 ? "" : `, changes not read for ${age} s`;
  return `${entries} cached (${formatBytes(bytes)} of ${formatBytes(bytes_max)}${found}${late})`;
}

function printShared(shared: NonNullable<Status["shared"]>): void {
  const { postgres, trouble: problem, loading_paused_until: pausedUntil, fronts: nodes } = shared;
  const { loading_held_back_by: heldBack, person_cache: cache } = shared;
  print(`Shared in ${postgres}`);
  if (problem !== null) print(`          ${problem}`);
  if (pausedUntil !== null) print(`Loading   paused until ${pausedUntil}`);
  if (heldBack !== null) print(`          ${describeHeldBack(heldBack)}`);
  if (cache !== null) print(`Persons   ${describeCache(cache)}`);
  for (const node of nodes) {
    const notes = [node.version, node.is_this ? "this one" : "", node.loads_events ? "loads events" : ""];
    print(`Node      ${node.name} (${notes.filter((note) => note !== "").join(", ")})`);
  }
}

export const status = withJson(
  withSettings(new Command("status"), ["data-dir"]),
  Status,
  "print the state as JSON",
)
  .description("Show server status: event rate, lag, disk usage, backups, warnings, spikes.")
  .addHelpText(
    "after",
    "\nExamples:\n  flagkeep status\n  flagkeep status --json --data-dir /var/lib/flagkeep\n" +
      "  flagkeep status --url https://flags.example.com",
  )
  .action(
    run(async (options: CallOptions) => {
      const { state, dataDir } = await readStatus(options);
      if (lacksMembers(Status, state)) throw new VersionMismatchError(state);
      if (options.json) printJson(state);
      else show(state, dataDir);
    }),
  );

withServer(status);

/** @returns without a folder for the status of another server */
async function readStatus(options: CallOptions): Promise<{ state: Status; dataDir?: string }> {
  const server = getServer(options);
  if (server !== undefined) {
    const { getFromInstance } = await import("../operations/remote.ts");
    return { state: (await getFromInstance(server, "/status")) as Status };
  }
  const dataDir = assertInitialized(getDataDir(options as never));
  return { state: await currentStatus(dataDir), dataDir };
}

/** Ignores additional members. Members from files of other versions may be null. */
function lacksMembers({ properties }: TObject, value: object): boolean {
  return Object.entries(properties).some(([name, member]) => {
    const found = (value as Record<string, unknown>)[name];
    return found === undefined || (TypeGuard.IsObject(member) && lacksMembers(member, found ?? {}));
  });
}

function formatRetention({ days, projects, last_run_at, events_removed }: RetentionState): string {
  const retained = (days: number | null) => (days === null ? "forever" : `${days} days`);
  const own = projects
    .map((project) => `, of project ${project.project_id} ${retained(project.days)}`)
    .join("");
  const looked = last_run_at === null ? "" : `; ${events_removed} removed since the start`;
  return `kept ${retained(days)}${own}${looked}`;
}

function formatState({ running, state, uptime_seconds: seconds }: Status, dataDir?: string): string {
  if (!running) return "stopped";
  if (state !== "unreachable" || dataDir === undefined)
    return `${state}, for ${formatDuration(seconds ?? 0)}`;
  const holder = readHolder(paths(dataDir).lock);
  return `in use by ${holder === "" ? "a process" : `process ${holder}`}, which does not respond; see its log`;
}

function printWorkers(workers: Status["workers"]): void {
  const up = workers.filter((worker) => worker.up).length;
  const restarts = workers.reduce((sum, worker) => sum + worker.restarts, 0);
  print(`Workers   ${up} of ${workers.length} up, restarted ${restarts} times`);
}

function show(state: Status, dataDir?: string): void {
  const answers = state.running && state.state !== "unreachable";
  print(`State     ${formatState(state, dataDir)}`);
  print(`Version   ${state.version}`);
  if (answers) {
    print(`Address   ${state.url ?? "not listening yet"}`);
    print(`Events    ${state.events_per_second} per second`);
    if (state.workers.length > 0) printWorkers(state.workers);
    const { up, restarts, rebuilding, trouble: problem } = state.engine;
    print(`Engine    ${up ? "up" : "down"}, restarted ${restarts} times`);
    if (rebuilding !== null) {
      print(`          rebuilding the event store: ${rebuilding.done} of ${rebuilding.total} entries`);
    }
    if (problem !== null) print(`          ${problem.message} ${problem.hint}`);
    if (state.events_at !== null) print(`Stored in ${state.events_at}`);
    if (state.shared !== null) printShared(state.shared);
  }
  const { properties } = state.engine;
  if (properties.length > 0) {
    const texts = properties.map(({ name, filled }) =>
      filled === 1 ? name : `${name} (${Math.floor(filled * 100)} % filled)`,
    );
    print(`Columns   of materialized properties: ${texts.join(", ")}`);
  }
  for (const { role, ready, reason } of state.roles) {
    if (!ready) print(`REJECTED  ${role}: ${reason}`);
  }
  if (
    state.sqlite_corruption !== null &&
    !state.roles.some(({ reason }) => reason === state.sqlite_corruption)
  )
    print(`CORRUPT   ${state.sqlite_corruption}`);
  const { disk, volume } = state;
  print(
    `Volume    ${formatBytes(volume.free_bytes)} of ${formatBytes(volume.total_bytes)} free` +
      (volume.needed_bytes === null ? "" : `, events are rejected below ${formatBytes(volume.needed_bytes)}`),
  );
  print(
    `Disk      metadata ${formatBytes(disk.metadata_bytes)}, persons ${formatBytes(disk.people_bytes)}, ` +
      `events ${formatBytes(disk.events_bytes)}, journal ${formatBytes(disk.journal_bytes)}` +
      (disk.quarantine_bytes === 0 ? "" : `, quarantine ${formatBytes(disk.quarantine_bytes)}`) +
      (disk.archive_bytes === 0 ? "" : `, archive ${formatBytes(disk.archive_bytes)}`) +
      `, library ${formatBytes(disk.library_bytes)}` +
      (disk.backups_bytes === 0 ? "" : `, backups ${formatBytes(disk.backups_bytes)}`) +
      (disk.other_bytes === 0 ? "" : `, other ${formatBytes(disk.other_bytes)}`),
  );
  const { events, bytes_per_event: each } = state.stored;
  const all = Object.values(disk).reduce((sum, bytes) => sum + bytes, 0);
  print(
    `          ${formatBytes(all)} together` +
      (each === null ? "" : `; stores, journal and archive: ${each} bytes for each of ${events} events`),
  );
  if (state.retention !== null) print(`Events    ${formatRetention(state.retention)}`);
  for (const {
    project_id,
    kind,
    ends_at,
    requests,
    requests_with_new,
    last_used_at,
  } of state.replaced_keys) {
    const last = last_used_at === null ? "" : `, the last at ${last_used_at.slice(0, 19)}Z`;
    print(
      `Key       of project ${project_id} (${kind}) before the current key is valid until ${ends_at.slice(0, 19)}Z: ` +
        `${requests} of ${requests + requests_with_new} requests use it${last}`,
    );
  }
  const backup = state.last_backup;
  if (backup !== null) {
    if (backup.file !== null) print(`Backup    ${backup.created_at}, verified: ${backup.file}`);
    if (backup.error !== null) print(`Backup    FAILED ${backup.failed_at}: ${backup.error}`);
  }
  const scrubbed = state.last_scrub;
  if (scrubbed !== null) {
    const corrupt = scrubbed.parts.filter(({ damage }) => damage.length > 0).map(({ part }) => part);
    const found = scrubbed.ok
      ? "no corruption"
      : `CORRUPTION in ${corrupt.join(", ")}; see \`flagkeep scrub\``;
    print(`Scrub     ${scrubbed.at}, ${formatBytes(scrubbed.bytes)}: ${found}`);
  }
  const next = state.next_backup;
  if (next !== null) print(`Backup    next ${next.at} (${next.schedule}, time zone ${next.time_zone})`);
  for (const skipped of state.skipped_entries) print(`SKIPPED   ${describeSkipped(skipped)}`);
  for (const { lane, first_seq, last_seq, reason } of state.given_up) {
    const why = reason === "size" ? "the archive is full" : "the disk was almost full";
    print(`Archive   without ${lane} entries ${first_seq} to ${last_seq} (${why}), which no backup covers`);
  }
  print();
  printTable(
    ["lane", "accepted", "loaded", "waiting"],
    state.journal.map((lane) => [
      lane.lane,
      String(lane.last_seq),
      String(lane.applied_seq),
      String(lane.lag_entries),
    ]),
  );
  if (state.warnings.length > 0) {
    print("\nWarnings of the last 24 hours (see `flagkeep warnings`):");
    printTable(
      ["project", "type", "count"],
      state.warnings.map((warning) => [String(warning.project_id), warning.type, String(warning.count)]),
    );
  }
  if (state.spikes.length > 0) {
    print("\nOngoing event spikes:");
    printTable(
      ["project", "since", "peak/min", "usual/min"],
      state.spikes.map((spike) => [
        String(spike.project_id),
        spike.started_at.slice(0, 19),
        String(spike.peak_per_minute),
        String(spike.usual_per_minute),
      ]),
    );
  }
}
