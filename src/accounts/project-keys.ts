/** The two keys of a project, each of which may have one before it that still counts, and how much both are used. */

import { eq, sql } from "drizzle-orm";
import type { Reading } from "./db.ts";
import { project } from "./schema.ts";

type Project = typeof project.$inferSelect;

/** Where the keys of each kind stand in a project: `phc_` is public, `phs_` is secret. */
const columns = {
  public: {
    present: "apiToken",
    former: "formerApiToken",
    endsAt: "formerApiTokenEndsAt",
    usedAt: "formerApiTokenUsedAt",
    formerRequests: "formerApiTokenRequests",
    presentRequests: "presentApiTokenRequests",
  },
  secret: {
    present: "secretToken",
    former: "formerSecretToken",
    endsAt: "formerSecretTokenEndsAt",
    usedAt: "formerSecretTokenUsedAt",
    formerRequests: "formerSecretTokenRequests",
    presentRequests: "presentSecretTokenRequests",
  },
} as const;

export type KeyKind = keyof typeof columns;
export const keyKinds: readonly KeyKind[] = ["public", "secret"];

/** How much a key that was replaced is still used. */
export interface FormerKeyUse {
  readonly projectId: number;
  readonly kind: KeyKind;
  readonly endsAt: Date;
  readonly requests: number;
  /** With the present key, in the same time. */
  readonly presentRequests: number;
  readonly lastUsedAt: Date | null;
}

/** The key before the present one while it still counts. */
export function formerKeyOf(
  entry: Project,
  kind: KeyKind,
  now: Date,
): { token: string; endsAt: Date } | undefined {
  const { [columns[kind].former]: token, [columns[kind].endsAt]: endsAt } = entry;
  return token !== null && endsAt !== null && endsAt > now ? { token, endsAt } : undefined;
}

/** What makes a key of a project the present one. @param former the one before it, where it goes on to count. */
export function withKey(
  kind: KeyKind,
  token: string,
  former?: { token: string; endsAt: Date },
): Partial<Project> {
  const names = columns[kind];
  return {
    ...withoutFormerKey(kind),
    ...(former === undefined ? {} : { [names.former]: former.token, [names.endsAt]: former.endsAt }),
    [names.present]: token,
  };
}

export function presentKeyOf(entry: Project, kind: KeyKind): string {
  return entry[columns[kind].present];
}

/** The columns by which a project forgets the key before the present one, and what was counted of both. */
export function withoutFormerKey(kind: KeyKind): Partial<Project> {
  const { former, endsAt, usedAt, formerRequests, presentRequests } = columns[kind];
  return { [former]: null, [endsAt]: null, [usedAt]: null, [formerRequests]: 0, [presentRequests]: 0 };
}

/** Whose an unexpired or expired former key is kept as. */
export function hasKeyBefore(entry: Project, kind: KeyKind): boolean {
  return entry[columns[kind].former] !== null;
}

/** How much the key before is used; undefined when there is none, or its time is over. */
export function formerKeyUseOf(entry: Project, kind: KeyKind, now: Date): FormerKeyUse | undefined {
  const former = formerKeyOf(entry, kind, now);
  if (former === undefined) return undefined;
  const { usedAt, formerRequests, presentRequests } = columns[kind];
  return {
    ...{ projectId: entry.id, kind, endsAt: former.endsAt, requests: entry[formerRequests] },
    ...{ presentRequests: entry[presentRequests], lastUsedAt: entry[usedAt] },
  };
}

/** Requests that are counted and not stored yet. */
interface Uses {
  former: number;
  present: number;
  lastUsedAt: Date | null;
}

/** Finds projects by keys of one kind, without SQL, and counts the requests with each while two count. */
export class KeyIndex {
  private byToken = new Map<string, Project>();
  /** By former key, so that what was counted before another rotation is not taken for the new one's. */
  private uses = new Map<string, Uses>();

  constructor(
    private readonly db: Reading,
    private readonly kind: KeyKind,
  ) {}

  /** @param usable projects that are open. */
  refresh(usable: readonly Project[]): void {
    const { present, former } = columns[this.kind];
    this.byToken = new Map();
    for (const row of usable) {
      this.byToken.set(row[present], row);
      const before = row[former];
      if (before !== null) this.byToken.set(before, row);
    }
  }

  find(token: string): Project | undefined {
    const found = this.byToken.get(token);
    if (found === undefined) return undefined;
    const { present, former } = columns[this.kind];
    const formerToken = found[former];
    if (formerToken === null) return found;
    const now = new Date();
    if (formerKeyOf(found, this.kind, now) === undefined) return token === found[present] ? found : undefined;
    let uses = this.uses.get(formerToken);
    if (uses === undefined) {
      uses = { former: 0, present: 0, lastUsedAt: null };
      this.uses.set(formerToken, uses);
    }
    if (token === formerToken) {
      uses.former += 1;
      uses.lastUsedAt = now;
    } else uses.present += 1;
    return found;
  }

  /** Whether something was counted since the last time. */
  get hasUses(): boolean {
    return this.uses.size > 0;
  }

  /** Adds to the store what was counted since the last time; one small write for each project with two keys in use. */
  storeUses(): void {
    const { uses, db } = this;
    const names = columns[this.kind];
    this.uses = new Map();
    for (const [formerToken, { former, present, lastUsedAt }] of uses) {
      db.update(project)
        .set({
          [names.formerRequests]: sql`${project[names.formerRequests]} + ${former}`,
          [names.presentRequests]: sql`${project[names.presentRequests]} + ${present}`,
          ...(lastUsedAt === null ? {} : { [names.usedAt]: lastUsedAt }),
        })
        .where(eq(project[names.former], formerToken))
        .run();
    }
  }
}
