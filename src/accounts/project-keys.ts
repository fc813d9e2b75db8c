/** The public and secret key of a project, their predecessors that are still valid, and usage counts of both. */

import { eq, sql } from "drizzle-orm";
import type { Reading } from "./db.ts";
import { project } from "./schema.ts";

type Project = typeof project.$inferSelect;

/** Columns for each kind of key: `phc_` is public, `phs_` is secret. */
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

/** Usage of a replaced key. */
export interface PreviousKeyUsage {
  readonly projectId: number;
  readonly kind: KeyKind;
  readonly endsAt: Date;
  readonly requests: number;
  /** Requests with the present key in the same time. */
  readonly presentRequests: number;
  readonly lastUsedAt: Date | null;
}

/** The predecessor of the present key while it is valid. */
export function previousKey(
  entry: Project,
  kind: KeyKind,
  now: Date,
): { token: string; endsAt: Date } | undefined {
  const { [columns[kind].former]: token, [columns[kind].endsAt]: endsAt } = entry;
  return token !== null && endsAt !== null && endsAt > now ? { token, endsAt } : undefined;
}

/** Columns that make a key the present one. @param former its predecessor, if that stays valid. */
export function withKey(
  kind: KeyKind,
  token: string,
  former?: { token: string; endsAt: Date },
): Partial<Project> {
  const names = columns[kind];
  return {
    ...withoutPreviousKey(kind),
    ...(former === undefined ? {} : { [names.former]: former.token, [names.endsAt]: former.endsAt }),
    [names.present]: token,
  };
}

export function currentKey(entry: Project, kind: KeyKind): string {
  return entry[columns[kind].present];
}

/** Columns that remove the predecessor of the present key and both usage counts. */
export function withoutPreviousKey(kind: KeyKind): Partial<Project> {
  const { former, endsAt, usedAt, formerRequests, presentRequests } = columns[kind];
  return { [former]: null, [endsAt]: null, [usedAt]: null, [formerRequests]: 0, [presentRequests]: 0 };
}

/** Whether a predecessor is stored, expired or not. */
export function hasKeyBefore(entry: Project, kind: KeyKind): boolean {
  return entry[columns[kind].former] !== null;
}

/** Usage of the predecessor; undefined when it is absent or expired. */
export function previousKeyUsage(entry: Project, kind: KeyKind, now: Date): PreviousKeyUsage | undefined {
  const former = previousKey(entry, kind, now);
  if (former === undefined) return undefined;
  const { usedAt, formerRequests, presentRequests } = columns[kind];
  return {
    projectId: entry.id,
    kind,
    endsAt: former.endsAt,
    requests: entry[formerRequests],
    presentRequests: entry[presentRequests],
    lastUsedAt: entry[usedAt],
  };
}

/** Requests counted but not yet stored. */
interface Uses {
  former: number;
  present: number;
  lastUsedAt: Date | null;
}

/** Counts of a process that does not store them. */
export interface UsesByKey extends Uses {
  kind: KeyKind;
  /** The replaced key. */
  formerToken: string;
}

/** Finds projects by keys of one kind without SQL. Counts the requests with each key while two are valid. */
export class KeyIndex {
  private byToken = new Map<string, Project>();
  /** By former key, so that counts from before another rotation are not attributed to the new key. */
  private uses = new Map<string, Uses>();

  constructor(
    private readonly db: Reading,
    private readonly kind: KeyKind,
  ) {}

  /** @param usable unarchived projects. */
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
    if (previousKey(found, this.kind, now) === undefined) return token === found[present] ? found : undefined;
    const uses = this.getUses(formerToken);
    if (token === formerToken) {
      uses.former += 1;
      uses.lastUsedAt = now;
    } else uses.present += 1;
    return found;
  }

  /** Removes the counts since the last call, for the process that stores them. */
  takeUses(): UsesByKey[] {
    const { uses, kind } = this;
    this.uses = new Map();
    return [...uses].map(([formerToken, counts]) => ({ ...counts, kind, formerToken }));
  }

  /** Adds the counts of another process; `lastUsedAt` may be ISO 8601. */
  addUses({ formerToken, former, present, lastUsedAt }: UsesByKey): void {
    const uses = this.getUses(formerToken);
    uses.former += former;
    uses.present += present;
    if (lastUsedAt !== null) uses.lastUsedAt = new Date(lastUsedAt);
  }

  private getUses(formerToken: string): Uses {
    let uses = this.uses.get(formerToken);
    if (uses === undefined) {
      uses = { former: 0, present: 0, lastUsedAt: null };
      this.uses.set(formerToken, uses);
    }
    return uses;
  }

  /** Whether requests were counted since the last store. */
  get hasUses(): boolean {
    return this.uses.size > 0;
  }

  /** Stores the counts since the last call: one small write for each project with two valid keys. */
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
