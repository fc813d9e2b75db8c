/** The projects in memory. The capture and flag routes look a key up here for every request, without SQL. */

import { eq } from "drizzle-orm";
import type { Changes, Reading } from "./db.ts";
import { type FormerKeyUse, formerKeyUseOf, KeyIndex, type KeyKind, keyKinds } from "./project-keys.ts";
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
  /** The same of the secret key. */
  formerSecretToken: string | null;
  formerSecretTokenEndsAt: Date | null;
  formerSecretTokenUsedAt: Date | null;
  formerSecretTokenRequests: number;
  presentSecretTokenRequests: number;
  /** How many days events are kept: 0 for ever, null as the server's setting says. */
  eventsRetentionDays: number | null;
  /** On which day the weeks of insights start: 0 Sunday, 1 Monday; null is Monday (contract, management-api 6.3). */
  weekStartDay: 0 | 1 | null;
  /** An archived project takes no events and answers no flags; its data stay. */
  archivedAt: Date | null;
  createdAt: Date;
}

/**
 * Says what is stored, and what another process has changed a few milliseconds later. The projects it gives out are shared:
 * they are for reading only.
 */
export class ProjectDirectory {
  private mark = "";
  private byId = new Map<number, Project>();
  private readonly keys: Readonly<Record<KeyKind, KeyIndex>>;

  constructor(
    private readonly db: Reading,
    private readonly changes: Changes,
  ) {
    this.keys = { public: new KeyIndex(db, "public"), secret: new KeyIndex(db, "secret") };
  }

  /**
   * The project of a public key, or of the one before it while that still counts; undefined when unknown or archived.
   * Costs well under a microsecond. While two keys count, it counts how often each is used.
   */
  findByToken(token: string): Project | undefined {
    this.refresh();
    return this.keys.public.find(token);
  }

  /** Of every open project with two keys of a kind that count, how much each of them is used. */
  formerKeyUses(now = new Date()): FormerKeyUse[] {
    this.storeUses();
    return this.list().flatMap(({ id }) =>
      keyKinds.flatMap((kind) => this.formerKeyUse(id, kind, now) ?? []),
    );
  }

  /** The same of one project; undefined when it has one key only. */
  formerKeyUse(id: number, kind: KeyKind, now = new Date()): FormerKeyUse | undefined {
    this.storeUses();
    const row = this.db.select().from(project).where(eq(project.id, id)).get();
    return row && formerKeyUseOf(row, kind, now);
  }

  /** Whether something was counted since the last time. */
  get hasUses(): boolean {
    return keyKinds.some((kind) => this.keys[kind].hasUses);
  }

  /** Adds to the store what was counted since the last time; one small write for each project with two keys in use. */
  storeUses(): void {
    for (const kind of keyKinds) this.keys[kind].storeUses();
  }

  /** The same of a secret key (`phs_`). */
  findBySecretToken(token: string): Project | undefined {
    this.refresh();
    return this.keys.secret.find(token);
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
    const mark = this.changes.mark("projects");
    if (mark === this.mark) return;
    const rows: Project[] = this.db.select().from(project).orderBy(project.id).all();
    const usable = rows.filter((row) => row.archivedAt === null);
    this.byId = new Map(rows.map((row) => [row.id, row]));
    for (const kind of keyKinds) this.keys[kind].refresh(usable);
    this.mark = mark;
  }
}
