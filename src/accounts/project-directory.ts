/** The projects in memory. The capture and flag routes look a key up here for every request, without SQL. */

import type { Changes, Reading } from "./db.ts";
import { project } from "./schema.ts";

export interface Project {
  id: number;
  uuid: string;
  organizationId: string;
  name: string;
  /** The public key (`phc_`). */
  apiToken: string;
  /** The secret key (`phs_`): local evaluation and remote configuration only. */
  secretToken: string;
  /** IANA name. */
  timezone: string;
  /** Events are stored without `$ip`. */
  anonymizeIps: boolean;
  /** Whether an event has ever arrived. */
  ingestedEvent: boolean;
  /** Changes of which flags somebody else has to agree to; `critical`: of those with this tag. */
  approvals: "off" | "critical" | "all";
  /** An archived project takes no events and answers no flags; its data stay. */
  archivedAt: Date | null;
  createdAt: Date;
}

export class ProjectDirectory {
  private revision = -1;
  private byId = new Map<number, Project>();
  private byToken = new Map<string, Project>();
  private bySecret = new Map<string, Project>();

  constructor(
    private readonly db: Reading,
    private readonly changes: Changes,
  ) {}

  /** The project of a public key; undefined when unknown or archived. Costs well under a microsecond. */
  findByToken(token: string): Project | undefined {
    this.refresh();
    return this.byToken.get(token);
  }

  /** The project of a secret key (`phs_`); undefined when unknown or archived. */
  findBySecretToken(token: string): Project | undefined {
    this.refresh();
    return this.bySecret.get(token);
  }

  /** Also finds archived projects. */
  find(id: number): Project | undefined {
    this.refresh();
    return this.byId.get(id);
  }

  /** Every project by id, archived ones only on request. */
  list(options: { includeArchived?: boolean } = {}): Project[] {
    this.refresh();
    return [...this.byId.values()].filter(
      (entry) => options.includeArchived === true || entry.archivedAt === null,
    );
  }

  private refresh(): void {
    const revision = this.changes.revision("projects");
    if (revision === this.revision) return;
    const rows: Project[] = this.db.select().from(project).orderBy(project.id).all();
    const usable = rows.filter((row) => row.archivedAt === null);
    this.byId = new Map(rows.map((row) => [row.id, row]));
    this.byToken = new Map(usable.map((row) => [row.apiToken, row]));
    this.bySecret = new Map(usable.map((row) => [row.secretToken, row]));
    this.revision = revision;
  }
}
