/**
 * Remembers how far the files of an import were taken, so that it can go on after an interruption.
 *
 * Before a batch is sent its counts are written down together with the state before it. A run that finds such a batch
 * sends it once more, whether it arrived or not (events have fixed uuids), and takes over the counts: what was new
 * then cannot be told from what is stored now.
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

/** What is in the file is not what an earlier run has read there. */
export class ImportChanged extends AppError {
  readonly code = "import_changed";
  override readonly hint = "Run the import without --resume; events that are stored are not stored twice.";
}

/** The interrupted import read the records in another way: the rest would not fit what is loaded. */
export class ImportOptionsChanged extends AppError {
  readonly code = "import_options_changed";
  override readonly hint = "Repeat these options, or run the import without --resume.";
  constructor(names: readonly string[]) {
    super(`The interrupted import had other values of ${names.join(", ")}.`);
  }
}

/** Options that decide which event a record becomes: each with its values as text. */
export type ReadingOptions = Readonly<Record<string, readonly string[]>>;

export interface FileProgress {
  isDone: boolean;
  /** The last line that is taken; 0 when there is none. */
  line: number;
  /** Of the record in this line, to notice another file. */
  fingerprint: string;
  counts: ImportCounts;
  /** Length of the reject file. */
  rejectBytes: number;
  /** Uuids of its events are made of their number among equal records: those of a later run go on behind them. */
  hasOrdinals?: boolean;
  /** The batch that was being sent: up to which line, and what of it was new. */
  sending?: { line: number; accepted: number; duplicate: number; made: number };
}

export const noProgress = (): FileProgress => ({
  ...{ isDone: false, line: 0, fingerprint: "", counts: emptyCounts(), rejectBytes: 0 },
});

/** The progress of all files of one import: one file each, in a folder of their own. */
export class ImportProgress {
  private readonly folder: string;
  private isMade = false;

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

  /** @throws {ImportOptionsChanged} An earlier run that has loaded records had other options. */
  checkOptions(): void {
    const stored = this.storedOptions();
    if (stored === undefined) return;
    const names = new Set([...Object.keys(stored), ...Object.keys(this.options)]);
    const textOf = (options: ReadingOptions, name: string) => JSON.stringify(options[name] ?? []);
    const changed = [...names].filter((name) => textOf(stored, name) !== textOf(this.options, name));
    if (changed.length > 0) throw new ImportOptionsChanged(changed);
  }

  /** Undefined where nothing is loaded, or an older version has loaded it. */
  private storedOptions(): ReadingOptions | undefined {
    try {
      return JSON.parse(readFileSync(join(this.folder, optionsName), "utf8")) as ReadingOptions;
    } catch {
      return undefined;
    }
  }

  read(file: string): FileProgress {
    try {
      const stored = JSON.parse(readFileSync(this.pathOf(file), "utf8")) as FileProgress;
      // An older version counted less.
      return { ...stored, counts: { ...emptyCounts(), ...stored.counts } };
    } catch (error) {
      // What was not durable may be empty after a power failure.
      if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT")
        return noProgress();
      throw error;
    }
  }

  /**
   * @param isDurable also when the power fails; else only when the process is killed. It then costs at most the counts of a
   *   small file.
   */
  write(file: string, progress: FileProgress, { isDurable = true } = {}): void {
    if (!this.isMade) {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 });
      writeFileSync(join(this.folder, optionsName), JSON.stringify(this.options), { mode: 0o600 });
    }
    this.isMade = true;
    const path = this.pathOf(file);
    const handle = openSync(`${path}.new`, "w", 0o600);
    try {
      writeSync(handle, JSON.stringify({ file, ...progress }));
      if (isDurable) fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(`${path}.new`, path);
  }

  /** The id of the import, the same in all its runs until it is forgotten. */
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

  /** All at once: a run that is killed here leaves everything or nothing. */
  forget(): void {
    this.isMade = false;
    const gone = join(this.parent, `gone-${crypto.randomUUID()}`);
    try {
      renameSync(this.folder, gone);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
      throw error;
    }
    rmSync(gone, { recursive: true, force: true });
  }

  /** For the rows of persons and groups of all files; not created here. */
  get snapshotsPath(): string {
    return join(this.folder, "snapshots.sqlite");
  }

  /** For the rows of lookup files; not created here. */
  get lookupsPath(): string {
    return join(this.folder, "lookups.sqlite");
  }

  private pathOf(file: string): string {
    return join(this.folder, `${digest(file)}.json`);
  }
}

const importIdName = "import-id";
const optionsName = "options";

/** 32 hexadecimal digits of SHA-256: names files, and tells texts apart. */
export function digest(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 32);
}
