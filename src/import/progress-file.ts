/**
 * Records the progress of an import's files, so that it can be resumed.
 *
 * Before a batch is sent its counts are recorded together with the state before it. A run that finds such a batch sends
 * it again, whether it arrived or not (UUIDs are deterministic), and uses the recorded counts: by then, new events can
 * no longer be distinguished from stored ones.
 */

import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { AppError } from "../lib/errors.ts";
import { emptyCounts, type ImportCounts } from "./counts.ts";
import type { Span } from "./receipt.ts";

/** The contents of the file differ from those that an earlier run has read. */
export class ImportFileChangedError extends AppError {
  readonly code = "import_changed";
  override readonly hint = "Run the import without --resume; events that are stored are not stored twice.";
}

/** The interrupted import read the records with other options: the rest would not fit what is loaded. */
class ImportOptionsChangedError extends AppError {
  readonly code = "import_options_changed";
  override readonly hint = "Repeat these options, or run the import without --resume.";
  constructor(names: readonly string[]) {
    super(`The interrupted import had other values of ${names.join(", ")}.`);
  }
}

/** Options that affect the event of a record, with their values as strings. */
export type ReadingOptions = Readonly<Record<string, readonly string[]>>;

export interface FileProgress {
  isDone: boolean;
  /** The last line that is done; 0 before the first. */
  line: number;
  /** Fingerprint of this line's record, to detect a changed file. */
  fingerprint: string;
  counts: ImportCounts;
  /** Length of the reject file. */
  rejectBytes: number;
  /** UUIDs of its events contain their number among equal records: later runs continue the numbering. */
  hasOrdinals?: boolean;
  /** The time span of its events. */
  span?: Span | undefined;
  /** The batch that was being sent: its last line, and the counts of its new events. */
  sending?: { line: number; accepted: number; duplicate: number; made: number };
}

export const noProgress = (): FileProgress => ({
  isDone: false,
  line: 0,
  fingerprint: "",
  counts: emptyCounts(),
  rejectBytes: 0,
});

/**
 * The progress of all files of one import, in a dedicated folder: one file each, and one for all small ones, of which an
 * archive can have many. Closing it does not end its use.
 */
export class ImportProgress implements Disposable {
  private readonly folder: string;
  private isCreated = false;
  /** Of the progress of small files, once written. */
  private log: number | undefined;
  /** Last line of each small file of earlier runs, once read. */
  private logged: Map<string, string> | undefined;

  /**
   * @param source  absolute path of the file or folder, or `-`.
   * @param options stored with the first progress.
   */
  constructor(
    private readonly parent: string,
    projectId: number,
    source: string,
    private readonly options: ReadingOptions = {},
  ) {
    this.folder = join(parent, digest(`${projectId}:${source}`));
  }

  /** @throws {ImportOptionsChangedError} an earlier run that has loaded records had other options. */
  checkOptions(): void {
    const stored = this.storedOptions();
    if (stored === undefined) return;
    const names = new Set([...Object.keys(stored), ...Object.keys(this.options)]);
    const getText = (options: ReadingOptions, name: string) => JSON.stringify(options[name] ?? []);
    const changed = [...names].filter((name) => getText(stored, name) !== getText(this.options, name));
    if (changed.length > 0) throw new ImportOptionsChangedError(changed);
  }

  /** Undefined when nothing is loaded, or an older version has loaded it. */
  private storedOptions(): ReadingOptions | undefined {
    try {
      return JSON.parse(readFileSync(join(this.folder, optionsName), "utf8")) as ReadingOptions;
    } catch {
      return undefined;
    }
  }

  read(file: string): FileProgress {
    this.logged ??= this.readLog();
    const found = [this.stored(file), this.logged.get(digest(file))].flatMap((json) => {
      try {
        return json === undefined ? [] : [JSON.parse(json) as FileProgress];
      } catch {
        // A file that was not synced may be empty after a power failure.
        return [];
      }
    });
    const stored = found.sort(byProgress).at(-1);
    // Older versions had fewer counts.
    return stored === undefined
      ? noProgress()
      : { ...stored, counts: { ...emptyCounts(), ...stored.counts } };
  }

  private stored(file: string): string | undefined {
    try {
      return readFileSync(this.getPath(file), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Lines of small files: digest of the name and progress. */
  private readLog(): Map<string, string> {
    const lines = new Map<string, string>();
    try {
      // The last line may be cut off, followed by others.
      for (const line of readFileSync(join(this.folder, logName), "utf8").split("\n"))
        if (line.endsWith("}")) lines.set(line.slice(0, digestLength), line.slice(digestLength));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    return lines;
  }

  /**
   * @param isSmall a power failure costs at most the counts of the file; only a crash of the process is survived.
   */
  write(file: string, progress: FileProgress, { isSmall = false } = {}): void {
    if (!this.isCreated) {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      writeFileSync(join(this.folder, optionsName), JSON.stringify(this.options), { mode: 0o600 });
    }
    this.isCreated = true;
    const json = JSON.stringify({ file, ...progress });
    if (isSmall) {
      this.log ??= openSync(join(this.folder, logName), "a", 0o600);
      writeSync(this.log, `\n${digest(file)}${json}`);
      return;
    }
    const path = this.getPath(file);
    const handle = openSync(`${path}.new`, "w", 0o600);
    try {
      writeSync(handle, json);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(`${path}.new`, path);
  }

  [Symbol.dispose](): void {
    if (this.log !== undefined) closeSync(this.log);
    this.log = undefined;
  }

  /** The ID of the import, the same in all its runs until it is forgotten. */
  importId(): string {
    const path = join(this.folder, importIdName);
    try {
      return readFileSync(path, "utf8");
    } catch {
      const id = crypto.randomUUID();
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      writeFileSync(path, id, { mode: 0o600 });
      return id;
    }
  }

  /** Atomic: a run that is killed here leaves everything or nothing. */
  forget(): void {
    this[Symbol.dispose]();
    this.isCreated = false;
    this.logged = undefined;
    const deleted = join(this.parent, `gone-${crypto.randomUUID()}`);
    try {
      renameSync(this.folder, deleted);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    rmSync(deleted, { recursive: true, force: true });
  }

  /** For the rows of persons and groups of all files; not created here. */
  get snapshotsPath(): string {
    return join(this.folder, "snapshots.sqlite");
  }

  /** For the rows of lookup files; not created here. */
  get lookupsPath(): string {
    return join(this.folder, "lookups.sqlite");
  }

  private getPath(file: string): string {
    return join(this.folder, `${digest(file)}.json`);
  }
}

const importIdName = "import-id";
const optionsName = "options";
const logName = "small-files";

/** Ascending: what was recorded later is at least as far. */
function byProgress(a: FileProgress, b: FileProgress): number {
  const stage = ({ isDone, sending }: FileProgress) => (isDone ? 2 : sending === undefined ? 0 : 1);
  return a.line - b.line || stage(a) - stage(b);
}

const digestLength = 32;

/** 32 hexadecimal digits of SHA-256, for file names and comparisons. */
export function digest(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);
}
