/** Remembers up to which line a file was acknowledged, so that an import can go on after an interruption. */

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export class Position {
  private readonly folder: string;
  private readonly path: string;

  /** @param file absolute. */
  constructor(
    dataDir: string,
    private readonly file: string,
    private readonly projectId: number,
  ) {
    this.folder = join(dataDir, "import-state");
    const name = new Bun.CryptoHasher("sha256").update(`${projectId}:${file}`).digest("hex");
    this.path = join(this.folder, `${name}.json`);
  }

  /** The last line that is acknowledged; 0 when there is none. */
  read(): number {
    try {
      return (JSON.parse(readFileSync(this.path, "utf8")) as { line: number }).line;
    } catch {
      return 0;
    }
  }

  write(line: number): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ file: this.file, project_id: this.projectId, line });
    writeFileSync(`${this.path}.new`, text, { mode: 0o600 });
    renameSync(`${this.path}.new`, this.path);
  }

  forget(): void {
    rmSync(this.path, { force: true });
  }
}
