/** Projects, which own flags and events (contract: management-api 6.5). */

import { eq, or, sql } from "drizzle-orm";
import { InvalidFieldError, NotFoundError, trimmedString } from "../lib/errors.ts";
import { zoneName } from "../lib/time-zone.ts";
import { type Author, type Change, recordActivity } from "./activity.ts";
import { bumpRevision, type MetadataTx } from "./db.ts";
import { checkAdoptedProjectKey, newProjectKey, newSecretKey } from "./key-formats.ts";
import type { Metadata } from "./metadata.ts";
import type { Project } from "./project-directory.ts";
import {
  currentKey,
  hasKeyBefore,
  type KeyKind,
  previousKey,
  withKey,
  withoutPreviousKey,
} from "./project-keys.ts";
import { checkFlagViews, checkWebGoals, type FlagView, type WebGoal } from "./project-settings.ts";
import { organization, project } from "./schema.ts";

export interface NewProject {
  organizationId: string;
  name: string;
  /** IANA name; default: `UTC`. */
  timezone?: string;
  anonymizeIps?: boolean;
  weekStartDay?: Project["weekStartDay"];
  /** A `phc_` key that clients already use; default: a new key. */
  projectApiKey?: string;
}

export interface ProjectChange {
  name?: string;
  timezone?: string;
  anonymizeIps?: boolean;
  approvals?: Project["approvals"];
  /** Days; 0: unlimited, null: the server's setting. */
  eventsRetentionDays?: number | null;
  weekStartDay?: Project["weekStartDay"];
  webGoals?: readonly Partial<WebGoal>[];
  countScreens?: boolean;
  flagViews?: readonly FlagView[];
}

const projectsPerOrganizationMax = 2_000;
const nameLengthMax = 200;

/**
 * Creates a project with new keys.
 *
 * @throws {NotFoundError} no such organization.
 * @throws {InvalidFieldError} name, time zone or adopted key; over `projectsPerOrganizationMax` in the organization.
 */
export function createProject(metadata: Metadata, input: NewProject, by: Author, now = new Date()): Project {
  return metadata.change((t) => insertProject(t, input, by, now));
}

/** As `createProject`, inside a transaction. */
export function insertProject(t: MetadataTx, input: NewProject, by: Author, now: Date): Project {
  if (!t.select().from(organization).where(eq(organization.id, input.organizationId)).get()) {
    throw new NotFoundError("Organization not found.");
  }
  const count = t
    .select({ count: sql<number>`count(*)` })
    .from(project)
    .where(eq(project.organizationId, input.organizationId))
    .get()!.count;
  if (count >= projectsPerOrganizationMax) {
    throw new InvalidFieldError(
      null,
      "invalid_input",
      `An organization can have at most ${projectsPerOrganizationMax} projects.`,
    );
  }
  const apiToken =
    input.projectApiKey === undefined ? newProjectKey() : checkAdoptedProjectKey(input.projectApiKey);
  const isUsed = or(eq(project.apiToken, apiToken), eq(project.formerApiToken, apiToken));
  if (t.select().from(project).where(isUsed).get()) {
    throw new InvalidFieldError("api_token", "unique", "Another project already uses this key.");
  }
  const created = t
    .insert(project)
    .values({
      uuid: Bun.randomUUIDv7(),
      organizationId: input.organizationId,
      name: trimmedString("name", input.name, nameLengthMax),
      apiToken,
      secretToken: newSecretKey(),
      timezone: checkTimezone(input.timezone ?? "UTC"),
      anonymizeIps: input.anonymizeIps ?? false,
      weekStartDay: input.weekStartDay ?? null,
      createdAt: now,
    })
    .returning()
    .get();
  bumpRevision(t, "projects");
  recordProjectActivity(t, created, "created", [], by, now);
  return created;
}

/** Changes the name, time zone or IP anonymization. @throws {NotFoundError} @throws {InvalidFieldError} */
export function updateProject(
  metadata: Metadata,
  id: number,
  change: ProjectChange,
  by: Author,
  now = new Date(),
): Project {
  return save(metadata, id, by, now, () => ({
    ...(change.name === undefined ? {} : { name: trimmedString("name", change.name, nameLengthMax) }),
    ...(change.timezone === undefined ? {} : { timezone: checkTimezone(change.timezone) }),
    ...(change.approvals === undefined ? {} : { approvals: change.approvals }),
    ...(change.anonymizeIps === undefined ? {} : { anonymizeIps: change.anonymizeIps }),
    ...(change.eventsRetentionDays === undefined ? {} : { eventsRetentionDays: change.eventsRetentionDays }),
    ...(change.weekStartDay === undefined ? {} : { weekStartDay: change.weekStartDay }),
    ...(change.webGoals === undefined ? {} : { webGoals: checkWebGoals(change.webGoals) }),
    ...(change.countScreens === undefined ? {} : { countScreens: change.countScreens }),
    ...(change.flagViews === undefined ? {} : { flagViews: checkFlagViews(change.flagViews) }),
  }));
}

/** Maximum time that a replaced key stays valid. */
export const graceSecondsMax = 90 * 86_400;

interface Rotation {
  /** How long the old key stays valid; 0: it and a still valid predecessor stop working immediately. */
  graceSeconds?: number;
  now?: Date;
}

/**
 * Rotates the public key.
 *
 * @throws {NotFoundError}
 * @throws {InvalidFieldError} a grace period is requested while the predecessor of this key is still valid.
 */
export function rotateProjectKey(metadata: Metadata, id: number, by: Author, how: Rotation = {}): Project {
  return rotate(metadata, id, by, { ...how, kind: "public", token: newProjectKey() });
}

/** Rotates the secret key; otherwise as `rotateProjectKey`. */
export function rotateSecretKey(metadata: Metadata, id: number, by: Author, how: Rotation = {}): Project {
  return rotate(metadata, id, by, { ...how, kind: "secret", token: newSecretKey() });
}

function rotate(
  metadata: Metadata,
  id: number,
  by: Author,
  { kind, token, graceSeconds = 0, now = new Date() }: Rotation & { kind: KeyKind; token: string },
): Project {
  metadata.projects.storeUses();
  return save(metadata, id, by, now, (before) => {
    if (graceSeconds === 0) return withKey(kind, token);
    const former = previousKey(before, kind, now);
    if (former !== undefined) {
      throw new InvalidFieldError(
        "grace_seconds",
        "two_keys_count",
        `The previous key is valid until ${former.endsAt.toISOString()}, and a project can have two keys. Revoke it first, or rotate without a grace period.`,
      );
    }
    const endsAt = new Date(now.getTime() + graceSeconds * 1_000);
    return withKey(kind, token, { token: currentKey(before, kind), endsAt });
  });
}

/** Revokes the predecessor of the present key; does nothing if it is not valid. @throws {NotFoundError} */
export function revokePreviousKey(
  metadata: Metadata,
  id: number,
  kind: KeyKind,
  by: Author,
  now = new Date(),
): Project {
  return save(metadata, id, by, now, (before) =>
    hasKeyBefore(before, kind) ? withoutPreviousKey(kind) : {},
  );
}

/** Archives a project (its keys stop working, its data is kept) or restores it. @throws {NotFoundError} */
export function archiveProject(
  metadata: Metadata,
  id: number,
  isArchived: boolean,
  by: Author,
  now = new Date(),
): Project {
  return save(metadata, id, by, now, (before) => ({
    archivedAt: isArchived ? (before.archivedAt ?? now) : null,
  }));
}

/** For archiving. @throws {InvalidFieldError} the project is the last unarchived one of its organization. */
export function assertNotLastProject(metadata: Pick<Metadata, "projects">, id: number): void {
  const open = metadata.projects.list();
  const found = open.find((project) => project.id === id);
  if (found === undefined) return;
  if (open.some((project) => project.id !== id && project.organizationId === found.organizationId)) return;
  throw new InvalidFieldError(
    "archived",
    "last_project",
    "This is the last active project of its organization. Create another project first.",
  );
}

/** Records that a first event arrived; does nothing if already recorded. */
export function recordFirstEvent(metadata: Metadata, id: number): void {
  if (metadata.projects.find(id)?.ingestedEvent !== false) return;
  metadata.change((t) => {
    t.update(project).set({ ingestedEvent: true }).where(eq(project.id, id)).run();
    bumpRevision(t, "projects");
  });
}

function save(
  metadata: Metadata,
  id: number,
  by: Author,
  now: Date,
  getChange: (before: Project) => Partial<Project>,
): Project {
  return metadata.change((t) => {
    const before = t.select().from(project).where(eq(project.id, id)).get();
    if (!before) throw new NotFoundError("Project not found.");
    const change = getChange(before);
    if (Object.keys(change).length === 0) return before;
    const after = t.update(project).set(change).where(eq(project.id, id)).returning().get();
    bumpRevision(t, "projects");
    recordProjectActivity(t, after, "updated", getChanges(before, after), by, now);
    return after;
  });
}

/** The log names keys but never shows them. */
function getChanges(before: Project, after: Project): Change[] {
  const shown = (entry: Project) => ({
    name: entry.name,
    timezone: entry.timezone,
    anonymize_ips: entry.anonymizeIps,
    approvals: entry.approvals,
    events_retention_days: entry.eventsRetentionDays,
    week_start_day: entry.weekStartDay,
    web_goals: entry.webGoals.map((goal) => ({ ...goal })),
    count_screens: entry.countScreens,
    flag_views: entry.flagViews.map((view) => ({ ...view })),
    archived: entry.archivedAt !== null,
  });
  const old = shown(before);
  const present = shown(after);
  const changes: Change[] = [];
  for (const field of Object.keys(old) as (keyof typeof old)[]) {
    if (Bun.deepEquals(old[field], present[field])) continue;
    changes.push({ type: "Team", action: "changed", field, before: old[field], after: present[field] });
  }
  for (const [field, isSame] of [
    ["api_token", before.apiToken === after.apiToken],
    ["api_token_backup", before.formerApiToken === after.formerApiToken],
    ["secret_api_token", before.secretToken === after.secretToken],
    ["secret_api_token_backup", before.formerSecretToken === after.formerSecretToken],
  ] as const) {
    if (!isSame) changes.push({ type: "Team", action: "changed", field, before: null, after: null });
  }
  return changes;
}

function recordProjectActivity(
  t: MetadataTx,
  item: Project,
  activity: string,
  changes: Change[],
  by: Author,
  now: Date,
): void {
  recordActivity(t, {
    by,
    organizationId: item.organizationId,
    projectId: item.id,
    activity,
    scope: "Team",
    itemId: item.id,
    name: item.name,
    changes,
    now,
  });
}

function checkTimezone(timezone: string): string {
  const name = zoneName(timezone);
  if (name === undefined)
    throw new InvalidFieldError("timezone", "invalid_choice", `"${timezone}" is not a valid choice.`);
  return name;
}
