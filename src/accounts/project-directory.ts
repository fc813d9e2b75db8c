/** The projects in memory. Capture and flag routes look up a key here on every request, without SQL. */

import { eq } from "drizzle-orm";
import type { Changes, Reading } from "./db.ts";
import {
  KeyIndex,
  type KeyKind,
  keyKinds,
  type PreviousKeyUsage,
  previousKeyUsage,
  type UsesByKey,
} from "./project-keys.ts";
import type { FlagView, WebGoal } from "./project-settings.ts";
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
  /** Flags whose changes need another user's approval; `critical`: flags with this tag. */
  approvals: "off" | "critical" | "all";
  /** The predecessor of the public key; null if there was no rotation or it had expired when read. */
  formerApiToken: string | null;
  /** Expiry of the predecessor. */
  formerApiTokenEndsAt: Date | null;
  /** Null if unused since the rotation. */
  formerApiTokenUsedAt: Date | null;
  /** Requests with the former key and with the present one since the rotation, as last stored. */
  formerApiTokenRequests: number;
  presentApiTokenRequests: number;
  /** The same for the secret key. */
  formerSecretToken: string | null;
  formerSecretTokenEndsAt: Date | null;
  formerSecretTokenUsedAt: Date | null;
  formerSecretTokenRequests: number;
  presentSecretTokenRequests: number;
  /** Event retention in days: 0 is unlimited, null is the server's setting. */
  eventsRetentionDays: number | null;
  /** First day of the week in insights: 0 Sunday, 1 Monday; null is Monday (contract, management-api 6.3). */
  weekStartDay: 0 | 1 | null;
  /** Goals of web analytics. */
  webGoals: WebGoal[];
  /** Whether web analytics counts `$screen` as a page view. */
  countScreens: boolean;
  /** Saved views of the flag list. */
  flagViews: FlagView[];
  /** An archived project accepts no events and evaluates no flags; its data is kept. */
  archivedAt: Date | null;
  createdAt: Date;
}

/**
 * Index of the stored projects. Changes of another process appear a few milliseconds later. The returned projects are
 * shared: do not modify them.
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
   * The project of a public key or its valid predecessor; undefined when unknown or archived. Takes well under a
   * microsecond. Counts the use of each key while two are valid.
   */
  findByToken(token: string): Project | undefined {
    this.refresh();
    return this.keys.public.find(token);
  }

  /** Key usage of every unarchived project with two valid keys of a kind. */
  formerKeyUses(now = new Date()): PreviousKeyUsage[] {
    this.storeUses();
    return this.list().flatMap(({ id }) =>
      keyKinds.flatMap((kind) => this.formerKeyUse(id, kind, now) ?? []),
    );
  }

  /** Key usage of one project; undefined when it has one valid key only. */
  formerKeyUse(id: number, kind: KeyKind, now = new Date()): PreviousKeyUsage | undefined {
    this.storeUses();
    const row = this.db.select().from(project).where(eq(project.id, id)).get();
    return row && previousKeyUsage(row, kind, now);
  }

  /** Whether requests were counted since the last store. */
  get hasUses(): boolean {
    return keyKinds.some((kind) => this.keys[kind].hasUses);
  }

  /** Stores the counts since the last call: one small write for each project with two valid keys. */
  storeUses(): void {
    for (const kind of keyKinds) this.keys[kind].storeUses();
  }

  /** Removes the counts since the last call, for the process that stores them. */
  takeUses(): UsesByKey[] {
    return keyKinds.flatMap((kind) => this.keys[kind].takeUses());
  }

  /** Adds the counts of another process. */
  addUses(uses: UsesByKey): void {
    this.keys[uses.kind].addUses(uses);
  }

  /** The project of a secret key (`phs_`), as `findByToken`. */
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
