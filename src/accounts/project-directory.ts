/** The projects in memory. The capture and flag routes look a key up here for every request, without SQL. */

import { eq, sql } from "drizzle-orm";
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
  /** The public key before this one; null when there is none, or its time was over when that was looked up. */
  formerApiToken: string | null;
  /** Until then the former key counts too. */
  formerApiTokenEndsAt: Date | null;
  /** Null when nobody has used it since the key was rotated. */
  formerApiTokenUsedAt: Date | null;
  /** Requests with the former key and with the present one since the rotation, as last stored. */
  formerApiTokenRequests: number;
  presentApiTokenRequests: number;
  /** How many days events are kept: 0 for ever, null as the server's setting says. */
  eventsRetentionDays: number | null;
  /** An archived project takes no events and answers no flags; its data stay. */
  archivedAt: Date | null;
  createdAt: Date;
}

/** How much the public key that was replaced is still used. */
export interface FormerKeyUse {
  readonly projectId: number;
  readonly endsAt: Date;
  readonly requests: number;
  /** With the present key, in the same time. */
  readonly presentRequests: number;
  readonly lastUsedAt: Date | null;
}

/** Requests that are counted and not stored yet. */
interface Uses {
  former: number;
  present: number;
  lastUsedAt: Date | null;
}

export class ProjectDirectory {
  private revision = -1;
  private byId = new Map<number, Project>();
  private byToken = new Map<string, Project>();
  private bySecret = new Map<string, Project>();
  /** By former key, so that what was counted before another rotation is not taken for the new one's. */
  private uses = new Map<string, Uses>();

  constructor(
    private readonly db: Reading,
    private readonly changes: Changes,
  ) {}

  /**
   * The project of a public key, or of the one before it while that still counts; undefined when unknown or archived.
   * Costs well under a microsecond. While two keys count, it counts how often each is used.
   */
  findByToken(token: string): Project | undefined {
    this.refresh();
    const found = this.byToken.get(token);
    if (found === undefined || found.formerApiToken === null) return found;
    return this.countUse(found, found.formerApiToken, token) ? found : undefined;
  }

  /** Of every open project with two keys that count, how much each of them is used. */
  formerKeyUses(now = new Date()): FormerKeyUse[] {
    this.storeUses();
    return this.list().flatMap(({ id }) => this.formerKeyUse(id, now) ?? []);
  }

  /** The same of one project; undefined when it has one key only. */
  formerKeyUse(id: number, now = new Date()): FormerKeyUse | undefined {
    this.storeUses();
    const row = this.db.select().from(project).where(eq(project.id, id)).get();
    if (!row || !hasFormerKey(row, now)) return undefined;
    return {
      projectId: id,
      endsAt: row.formerApiTokenEndsAt,
      requests: row.formerApiTokenRequests,
      presentRequests: row.presentApiTokenRequests,
      lastUsedAt: row.formerApiTokenUsedAt,
    };
  }

  /** Whether something was counted since the last time. */
  get hasUses(): boolean {
    return this.uses.size > 0;
  }

  /** Adds to the store what was counted since the last time; one small write for each project with two keys in use. */
  storeUses(): void {
    const { uses } = this;
    this.uses = new Map();
    for (const [formerToken, { former, present, lastUsedAt }] of uses) {
      this.db
        .update(project)
        .set({
          formerApiTokenRequests: sql`former_api_token_requests + ${former}`,
          presentApiTokenRequests: sql`present_api_token_requests + ${present}`,
          ...(lastUsedAt === null ? {} : { formerApiTokenUsedAt: lastUsedAt }),
        })
        .where(eq(project.formerApiToken, formerToken))
        .run();
    }
  }

  /** @returns false when the token is the former one and its time is over. */
  private countUse(found: Project, formerToken: string, token: string): boolean {
    const now = new Date();
    if (!hasFormerKey(found, now)) return token === found.apiToken;
    let uses = this.uses.get(formerToken);
    if (uses === undefined) {
      uses = { former: 0, present: 0, lastUsedAt: null };
      this.uses.set(formerToken, uses);
    }
    if (token === formerToken) {
      uses.former += 1;
      uses.lastUsedAt = now;
    } else {
      uses.present += 1;
    }
    return true;
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
    this.byToken = new Map(
      usable.flatMap((row) => {
        const entries: [string, Project][] = [[row.apiToken, row]];
        if (row.formerApiToken !== null) entries.push([row.formerApiToken, row]);
        return entries;
      }),
    );
    this.bySecret = new Map(usable.map((row) => [row.secretToken, row]));
    this.revision = revision;
  }
}

/** Whether the public key before the present one still counts. */
export function hasFormerKey(
  entry: Pick<Project, "formerApiToken" | "formerApiTokenEndsAt">,
  now: Date,
): entry is { formerApiToken: string; formerApiTokenEndsAt: Date } {
  return entry.formerApiToken !== null && (entry.formerApiTokenEndsAt?.getTime() ?? 0) > now.getTime();
}
