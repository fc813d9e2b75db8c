/** Imports of small files through the executable, each into a data directory of its own. */

import { copyFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { ImportSummary } from "../../src/import/summary.ts";
import type { JsonObject } from "../../src/lib/json/value.ts";
import { flagkeep, initializedDirectory, temporaryFolder } from "../support/server.ts";

const samples = join(import.meta.dir, "../fixtures/import-samples");

export class SampleProject {
  readonly folder = temporaryFolder();
  private files = 0;

  private constructor(readonly dataDir: string) {}

  static async create(dataDir?: string): Promise<SampleProject> {
    return new SampleProject(dataDir ?? (await initializedDirectory()).dataDir);
  }

  /** Imports a sample file, by name. */
  async sample(name: string, ...args: string[]): Promise<ImportSummary> {
    const path = join(this.folder, basename(name));
    copyFileSync(join(samples, name), path);
    return await this.file(path, ...args);
  }

  /** Imports records as lines of JSON, from a new file. */
  async records(records: readonly object[], ...args: string[]): Promise<ImportSummary> {
    this.files += 1;
    return await this.file(this.write(`records-${this.files}.ndjson`, getLines(records)), ...args);
  }

  write(name: string, content: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, content);
    return path;
  }

  async file(path: string, ...args: string[]): Promise<ImportSummary> {
    const { stdout, stderr } = await flagkeep([
      "import",
      path,
      "--json",
      "--data-dir",
      this.dataDir,
      ...args,
    ]);
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout) as ImportSummary;
  }

  /** The distinct ids of each person, each sorted. */
  async persons(): Promise<string[][]> {
    const rows = await this.query("SELECT distinct_ids FROM persons");
    return rows.map(({ distinct_ids }) => (distinct_ids as string[]).toSorted()).sort();
  }

  async query(sql: string): Promise<JsonObject[]> {
    const { stdout, stderr } = await flagkeep(["query", sql, "--json", "--data-dir", this.dataDir]);
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout).rows;
  }
}

export const getLines = (records: readonly object[]) =>
  records.map((each) => JSON.stringify(each)).join("\n");
