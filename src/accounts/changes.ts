/**
 * Notices that the metadata changed, also when another process (the command line) changed the file.
 *
 * SQLite counts the commits of other connections in `PRAGMA data_version`, which costs about a
 * microsecond and touches no page. Only when that moved, or this process wrote itself, are the revisions read.
 */

import type { Database, Statement } from "bun:sqlite";

/** How long a change of another process may stay unnoticed, in milliseconds. */
const checkEveryMs = 2;

export class Changes {
  private readonly dataVersion: Statement<{ data_version: number }, []>;
  private readonly revisions: Statement<{ name: string; value: number }, []>;
  private checkedAt = Number.NEGATIVE_INFINITY;
  private version = -1;
  private ownChange = true;
  private known = new Map<string, number>();

  constructor(client: Database) {
    this.dataVersion = client.query("PRAGMA data_version");
    this.revisions = client.query("SELECT name, value FROM revision");
  }

  /** Tells that this process changed something: SQLite does not count a connection's own commits. */
  expect(): void {
    this.ownChange = true;
  }

  /** Present revision of `name`; 0 when it never changed. At most `checkEveryMs` behind other processes. */
  revision(name: string): number {
    const now = performance.now();
    if (this.ownChange || now - this.checkedAt >= checkEveryMs) this.check(now);
    return this.known.get(name) ?? 0;
  }

  private check(now: number): void {
    this.checkedAt = now;
    const version = this.dataVersion.get()?.data_version ?? 0;
    if (version === this.version && !this.ownChange) return;
    this.version = version;
    this.ownChange = false;
    this.known = new Map(this.revisions.all().map((row) => [row.name, row.value]));
  }
}
