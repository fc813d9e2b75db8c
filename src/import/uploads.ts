/**
 * Imports uploaded over HTTP: each is a folder with the file, the status and the rejected records. Each runs this
 * executable in a separate process, two at a time, which loads the file like `flagkeep import` and reports its progress
 * over the control socket. Imports started on the command line report the same way.
 */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { reservedBytes, systemDisk } from "../journal/disk.ts";
import { setNewest } from "../lib/bounded-cache.ts";
import { Semaphore } from "../lib/concurrency.ts";
import { AppError, NotFoundError } from "../lib/errors.ts";
import { unlinkIncrementally } from "../lib/remove-files.ts";
import { paths } from "../paths.ts";
import type { RpcHandlers } from "../rpc/server.ts";
import { rejectEnding } from "./files.ts";
import {
  emptyCounts,
  getFileName,
  getSummary,
  type ImportOptions,
  type ImportReport,
  type ImportRun,
  type ImportState,
  readRun,
} from "./import-status.ts";

/** The operation is invalid in the import's state. */
export class ImportStateError extends AppError {
  readonly code = "import_state";
}

/** The part does not start at the end of the file. */
export class UploadOffsetError extends AppError {
  readonly code = "wrong_offset";
  constructor(readonly receivedBytes: number) {
    super(`${receivedBytes} bytes were received; the next part begins there.`);
  }
}

/** Too little disk space for the part, or too many unfinished imports. */
export class ImportCapacityError extends AppError {
  readonly code = "import_no_room";
}

/** Remembered imports of all projects; the oldest finished ones are evicted. */
export const importsMax = 100;
/** One slow import does not delay the others (contract, import 1.10); each may take 400 MB of memory. */
export const runningMax = 2;
/** Of the command line. */
const reportsMax = 50;
/** An import on the command line without a report for this long was killed. */
const silenceMs = 30_000;
/** How long a cancelled import may take to exit. */
const graceMs = 5_000;
const complaintLengthMax = 2_000;

type Child = Subprocess<"ignore", "pipe", "pipe">;

export interface ImportUploadsDeps {
  dataDir: string;
  /** How to start this executable. */
  executable: readonly string[];
  /** The setting `journal-reserve`: disk space that uploads may not use. */
  reserveBytes: number;
}

export class ImportUploads {
  private readonly folder: string;
  private readonly runs = new Map<string, ImportRun>();
  private readonly reported = new Map<string, { run: ImportRun; at: number }>();
  private readonly turn = new Semaphore({ total: runningMax, perKey: runningMax, waiting: importsMax });
  private readonly ends = new Set<Promise<void>>();
  private readonly writing = new Set<string>();
  /** Running processes, by import. */
  private readonly children = new Map<string, Child>();
  private isStopping = false;

  constructor(private readonly deps: ImportUploadsDeps) {
    this.folder = join(paths(deps.dataDir).importState, "uploads");
    if (!existsSync(this.folder)) return;
    for (const id of readdirSync(this.folder).sort()) {
      const run = readRun(join(this.folder, id, "import.json"));
      // Without a status file the upload was never created completely.
      if (run === undefined) rmSync(join(this.folder, id), { recursive: true, force: true });
      else this.runs.set(id, run);
      if (run?.state === "waiting" || run?.state === "running") this.change(run, { state: "interrupted" });
    }
  }

  /** Every remembered import, newest first; of one project, or of all. */
  list(projectId?: number): ImportRun[] {
    const now = performance.now();
    for (const { run, at } of this.reported.values())
      if (run.state === "running" && now - at > silenceMs) run.state = "interrupted";
    return [...this.runs.values(), ...[...this.reported.values()].map(({ run }) => run)]
      .filter((run) => projectId === undefined || run.projectId === projectId)
      .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  }

  /** @throws {NotFoundError} */
  find(projectId: number, id: string): ImportRun {
    const run = this.list(projectId).find((importRun) => importRun.id === id);
    if (run === undefined) throw new NotFoundError();
    return run;
  }

  /** Creates an import whose file is uploaded later. @throws {ImportCapacityError} */
  create(
    order: { projectId: number; name: string; options: ImportOptions; createdBy: number },
    now: Date,
  ): ImportRun {
    while (this.runs.size >= importsMax) {
      const oldest = [...this.runs.values()].find(({ state }) => state === "done" || state === "cancelled");
      if (oldest === undefined)
        throw new ImportCapacityError(
          `The limit of ${importsMax} imports is reached. Delete imports that are not needed.`,
        );
      void this.forget(oldest);
    }
    const run: ImportRun = {
      id: Bun.randomUUIDv7(),
      origin: "upload",
      state: "uploading",
      ...order,
      name: getFileName(order.name),
      createdAt: now.toISOString(),
      startedAt: null,
      finishedAt: null,
      receivedBytes: 0,
      figures: emptyCounts(),
      error: null,
      summary: null,
    };
    mkdirSync(this.getFiles(run), { recursive: true, mode: 0o700 });
    this.runs.set(run.id, run);
    this.write(run);
    return run;
  }

  /**
   * Appends bytes to the file.
   *
   * @throws {UploadOffsetError} @throws {ImportStateError} @throws {ImportCapacityError}
   */
  async append(run: ImportRun, bytes: Uint8Array, offset: number): Promise<void> {
    this.assertState(run, ["uploading"], "accepts no more parts");
    if (this.writing.has(run.id)) throw new ImportStateError("Another part is being written.");
    if (offset !== run.receivedBytes) throw new UploadOffsetError(run.receivedBytes);
    this.writing.add(run.id);
    try {
      const { freeBytes, totalBytes } = await systemDisk.space(this.folder);
      // The events of the file need at least as much space again.
      if (freeBytes - bytes.length * 2 < 2 * reservedBytes(this.deps.reserveBytes, totalBytes))
        throw new ImportCapacityError("Not enough disk space for the rest of the file.");
      const file = await open(this.getPath(run), "a", 0o600);
      try {
        // Removes a part that was only partially written.
        await file.truncate(offset);
        await file.writeFile(bytes);
        await file.datasync();
      } finally {
        await file.close();
      }
      this.change(run, { receivedBytes: offset + bytes.length });
    } finally {
      this.writing.delete(run.id);
    }
  }

  /**
   * Starts an import, or resumes one that ended early; it waits while `runningMax` others run.
   *
   * @throws {ImportStateError}
   */
  start(run: ImportRun, options: Partial<Pick<ImportOptions, "isDryRun" | "maxRejects">> = {}): void {
    const isTried = run.state === "done" && run.options?.isDryRun === true;
    const startable: ImportState[] = ["uploading", "failed", "cancelled", "interrupted"];
    if (!isTried) this.assertState(run, startable, "cannot be started");
    if (this.writing.has(run.id)) throw new ImportStateError("Another part is being written.");
    if (run.receivedBytes === 0) throw new ImportStateError("The file is empty: upload it first.");
    const sent = Object.entries(options).filter(([, value]) => value !== undefined);
    this.change(run, {
      state: "waiting",
      error: null,
      summary: null,
      finishedAt: null,
      figures: emptyCounts(),
      options: { ...run.options!, ...Object.fromEntries(sent) },
    });
    const end = this.runInTurn(run).finally(() => this.ends.delete(end));
    this.ends.add(end);
  }

  /** Cancels an import; loaded events stay, and it can be resumed. @throws {ImportStateError} */
  async cancel(run: ImportRun): Promise<void> {
    this.assertState(run, ["waiting", "running", "uploading"], "is not running");
    this.change(run, { state: "cancelled", finishedAt: new Date().toISOString() });
    await this.endChild(run.id);
  }

  /** Deletes an import with its file; loaded events stay. */
  async remove(run: ImportRun): Promise<void> {
    if (run.origin === "command_line") {
      this.assertState(run, ["done", "failed", "interrupted"], "runs on the command line", true);
      this.reported.delete(run.id);
      return;
    }
    if (run.state === "waiting" || run.state === "running") await this.cancel(run);
    await this.forget(run);
  }

  /** The rejected records, as lines of JSON. */
  async *rejects(run: ImportRun): AsyncGenerator<Uint8Array> {
    const folder = this.getFiles(run);
    if (run.origin !== "upload" || !existsSync(folder)) return;
    const names = readdirSync(folder).filter((name) => name.endsWith(rejectEnding));
    for (const name of names.sort()) yield* Bun.file(join(folder, name)).stream();
  }

  /** Control socket handlers of `flagkeep import`. */
  rpc(): RpcHandlers {
    return { import_report: (report: ImportReport) => this.take(report) };
  }

  /** Stops running imports; they can be resumed after the next start. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await Promise.all([...this.children.keys()].map((id) => this.endChild(id)));
    await Promise.all(this.ends);
  }

  private take({ id, projectId, name, isDryRun, state, figures }: ImportReport): void {
    const own = this.runs.get(id);
    if (own !== undefined) {
      own.figures = figures;
      return;
    }
    const now = new Date().toISOString();
    const known = this.reported.get(id)?.run;
    const run: ImportRun = {
      id,
      projectId,
      name,
      origin: "command_line",
      state,
      figures,
      options: null,
      createdBy: null,
      createdAt: known?.createdAt ?? now,
      receivedBytes: 0,
      startedAt: known?.startedAt ?? now,
      finishedAt: state === "running" ? null : now,
      error: null,
      summary: null,
    };
    // A finished dry run has no further status.
    if (isDryRun && state === "done") this.reported.delete(id);
    else setNewest(this.reported, id, { run, at: performance.now() }, reportsMax);
  }

  private async runInTurn(run: ImportRun): Promise<void> {
    const leave = await this.turn.enter(0, {});
    try {
      if (run.state !== "waiting" || !this.runs.has(run.id)) return;
      if (this.isStopping) this.change(run, { state: "interrupted" });
      else await this.runChild(run);
    } finally {
      leave();
    }
  }

  private async runChild(run: ImportRun): Promise<void> {
    this.change(run, { state: "running", startedAt: new Date().toISOString() });
    const options = run.options!;
    const finish = (change: Partial<ImportRun>) => {
      // Cancelled meanwhile: that state stays.
      if (run.state === "running") this.change(run, { finishedAt: new Date().toISOString(), ...change });
    };
    try {
      const child: Child = Bun.spawn(
        [
          ...this.deps.executable,
          "import",
          this.getPath(run),
          "--project",
          String(run.projectId),
          "--data-dir",
          this.deps.dataDir,
          "--format",
          options.format,
          "--max-rejects",
          String(options.maxRejects),
          ...options.map.map((rule) => `--map=${rule}`),
          ...(options.nulls ?? []).map((text) => `--null=${text}`),
          ...(options.timezone === undefined ? [] : [`--timezone=${options.timezone}`]),
          ...(options.isLinking ? [] : ["--no-link-identities"]),
          ...(options.isDryRun ? ["--dry-run"] : []),
          "--resume",
          "--json",
          "--report-as",
          run.id,
        ],
        { stdin: "ignore", stdout: "pipe", stderr: "pipe", env: process.env },
      );
      this.children.set(run.id, child);
      const [output, complaints, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      const summary = output.startsWith("{") ? getSummary(output) : null;
      if (code === 0) {
        if (!options.isDryRun) await removeInBackground(this.getPath(run));
        finish({ state: "done", summary });
      } else if (this.isStopping) finish({ state: "interrupted" });
      else finish({ state: "failed", summary, error: this.getErrorMessage(run, complaints, code) });
    } catch (error) {
      finish({ state: "failed", error: (error as Error).message });
    } finally {
      this.children.delete(run.id);
    }
  }

  private async endChild(id: string): Promise<void> {
    const child = this.children.get(id);
    if (child === undefined) return;
    child.kill("SIGINT");
    const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
    await child.exited;
    clearTimeout(timer);
  }

  /** The command's error message, without the folder that only this server knows. */
  private getErrorMessage(run: ImportRun, text: string, code: number): string {
    const lines = text.split("\n").filter((line) => line.startsWith("flagkeep: "));
    const said = lines.map((line) => line.replace(/^flagkeep: /, "")).join(" ");
    const shown = said
      .replaceAll(`${this.getFiles(run)}/`, "")
      .slice(0, complaintLengthMax)
      .toWellFormed();
    return shown === "" ? `The import process exited with status ${code}.` : shown;
  }

  private assertState(run: ImportRun, states: readonly ImportState[], why: string, isAny = false): void {
    const isOwn = run.origin === "upload" || isAny;
    if (!isOwn) throw new ImportStateError("The import runs on the command line.");
    if (!states.includes(run.state)) throw new ImportStateError(`The import is ${run.state}: it ${why}.`);
  }

  private change(run: ImportRun, change: Partial<ImportRun>): void {
    Object.assign(run, change);
    if (this.runs.has(run.id)) this.write(run);
  }

  private write(run: ImportRun): void {
    const path = join(this.folder, run.id, "import.json");
    writeFileSync(`${path}.new`, JSON.stringify(run), { mode: 0o600, flush: true });
    renameSync(`${path}.new`, path);
  }

  private async forget(run: ImportRun): Promise<void> {
    this.runs.delete(run.id);
    const folder = join(this.folder, run.id);
    try {
      // Without it the rest is invalid: leftovers of a failure or crash are deleted at the next start.
      rmSync(join(folder, "import.json"), { force: true });
      await removeInBackground(folder);
    } catch {}
  }

  private getFiles(run: ImportRun): string {
    return join(this.folder, run.id, "files");
  }

  private getPath(run: ImportRun): string {
    return join(this.getFiles(run), run.name);
  }
}

/** Resolves when the files are unlinked; the space of a large file is freed afterwards. */
async function removeInBackground(path: string): Promise<void> {
  const free = await unlinkIncrementally(path);
  void free().catch(() => undefined);
}
