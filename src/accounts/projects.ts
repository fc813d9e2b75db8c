/** Projects: every flag and every event belongs to one (contract: management-api 6.5). */

import { eq, or, sql } from "drizzle-orm";
import { InvalidField, NotFound, trimmedText } from "../lib/errors.ts";
import { zoneName } from "../lib/time-zone.ts";
import { type Author, type Change, recordActivity } from "./activity.ts";
import { bumpRevision, type MetadataTx } from "./db.ts";
import { checkAdoptedProjectKey, newProjectKey, newSecretKey } from "./key-formats.ts";
import type { Metadata } from "./metadata.ts";
import type { Project } from "./project-directory.ts";
import {
  formerKeyOf,
  hasKeyBefore,
  type KeyKind,
  presentKeyOf,
  withKey,
  withoutFormerKey,
} from "./project-keys.ts";
import { organization, project } from "./schema.ts";

export interface NewProject {
  organizationId: string;
  name: string;
  /** IANA name; `UTC` when absent. */
  timezone?: string;
  anonymizeIps?: boolean;
  weekStartDay?: Project["weekStartDay"];
  /** A `phc_` key that clients use already; a new one when absent. */
  projectApiKey?: string;
}

export interface ProjectChange {
  name?: string;
  timezone?: string;
  anonymizeIps?: boolean;
  approvals?: Project["approvals"];
  /** Days; 0 for ever, null as the server's setting says. */
  eventsRetentionDays?: number | null;
  weekStartDay?: Project["weekStartDay"];
}

const projectsPerOrganizationMax = 2_000;
const nameLengthMax = 200;

/**
 * Makes a project with fresh keys.
 *
 * @param by who acts; see `Author`.
 * @throws {NotFound}     no such organisation.
 * @throws {InvalidField} name, time zone or adopted key; over `projectsPerOrganizationMax` in the organisation.
 */
export function createProject(metadata: Metadata, input: NewProject, by: Author, now = new Date()): Project {
  return metadata.change((t) => insertProject(t, input, by, now));
}

/** As `createProject`, inside a transaction. */
export function insertProject(t: MetadataTx, input: NewProject, by: Author, now: Date): Project {
  if (!t.select().from(organization).where(eq(organization.id, input.organizationId)).get()) {
    throw new NotFound("Organization not found.");
  }
  const count = t
    .select({ count: sql<number>`count(*)` })
    .from(project)
    .where(eq(project.organizationId, input.organizationId))
    .get()!.count;
  if (count >= projectsPerOrganizationMax) {
    throw new InvalidField(
      null,
      "invalid_input",
      `An organization can have at most ${projectsPerOrganizationMax} projects.`,
    );
  }
  const apiToken =
    input.projectApiKey === undefined ? newProjectKey() : checkAdoptedProjectKey(input.projectApiKey);
  const isTaken = or(eq(project.apiToken, apiToken), eq(project.formerApiToken, apiToken));
  if (t.select().from(project).where(isTaken).get()) {
    throw new InvalidField("api_token", "unique", "Another project has this key already.");
  }
  const created = t
    .insert(project)
    .values({
      uuid: Bun.randomUUIDv7(),
      organizationId: input.organizationId,
      name: trimmedText("name", input.name, nameLengthMax),
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

/** Renames a project, moves its time zone, or (de)anonymises addresses. @throws {NotFound} @throws {InvalidField} */
export function updateProject(
  metadata: Metadata,
  id: number,
  change: ProjectChange,
  by: Author,
  now = new Date(),
): Project {
  return save(metadata, id, by, now, () => ({
    ...(change.name === undefined ? {} : { name: trimmedText("name", change.name, nameLengthMax) }),
    ...(change.timezone === undefined ? {} : { timezone: checkTimezone(change.timezone) }),
    ...(change.approvals === undefined ? {} : { approvals: change.approvals }),
    ...(change.anonymizeIps === undefined ? {} : { anonymizeIps: change.anonymizeIps }),
    ...(change.eventsRetentionDays === undefined ? {} : { eventsRetentionDays: change.eventsRetentionDays }),
    ...(change.weekStartDay === undefined ? {} : { weekStartDay: change.weekStartDay }),
  }));
}

/** How long a key may count beside the one that replaced it. */
export const graceSecondsMax = 90 * 86_400;

interface Rotation {
  /** How long the old key counts too; 0: it, and one before it that still counts, stop at once. */
  graceSeconds?: number;
  now?: Date;
}

/**
 * Gives a project a new public key.
 *
 * @throws {NotFound} @throws {InvalidField} a grace is asked for while the key before this one still counts.
 */
export function rotateProjectKey(metadata: Metadata, id: number, by: Author, how: Rotation = {}): Project {
  return rotate(metadata, id, by, { ...how, kind: "public", token: newProjectKey() });
}

/** Gives a project a new secret key; otherwise as `rotateProjectKey`. */
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
    const former = formerKeyOf(before, kind, now);
    if (former !== undefined) {
      throw new InvalidField(
        "grace_seconds",
        "two_keys_count",
        `The key before this one still counts until ${former.endsAt.toISOString()}, and there can be two: end it first, or rotate without a grace period.`,
      );
    }
    const endsAt = new Date(now.getTime() + graceSeconds * 1_000);
    return withKey(kind, token, { token: presentKeyOf(before, kind), endsAt });
  });
}

/** The key before the present one stops working now; nothing happens when it does not count any more. @throws {NotFound} */
export function endFormerKey(
  metadata: Metadata,
  id: number,
  kind: KeyKind,
  by: Author,
  now = new Date(),
): Project {
  return save(metadata, id, by, now, (before) => (hasKeyBefore(before, kind) ? withoutFormerKey(kind) : {}));
}

/** Closes a project: its keys stop working, its data stay. Or opens it again. @throws {NotFound} */
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

/** Before a project is archived. @throws {InvalidField} it is the last one of its organisation that is open. */
export function requireAnotherProject(metadata: Pick<Metadata, "projects">, id: number): void {
  const open = metadata.projects.list();
  const found = open.find((one) => one.id === id);
  if (found === undefined) return;
  if (open.some((one) => one.id !== id && one.organizationId === found.organizationId)) return;
  throw new InvalidField(
    "archived",
    "last_project",
    "This is the last open project of its organization: make another one first.",
  );
}

/** Remembers that a first event arrived; does nothing when that is known. */
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
  changeOf: (before: Project) => Partial<Project>,
): Project {
  return metadata.change((t) => {
    const before = t.select().from(project).where(eq(project.id, id)).get();
    if (!before) throw new NotFound("Project not found.");
    const change = changeOf(before);
    if (Object.keys(change).length === 0) return before;
    const after = t.update(project).set(change).where(eq(project.id, id)).returning().get();
    bumpRevision(t, "projects");
    recordProjectActivity(t, after, "updated", changesOf(before, after), by, now);
    return after;
  });
}

/** Keys are named, never shown, in the log. */
function changesOf(before: Project, after: Project): Change[] {
  const shown = (entry: Project) => ({
    name: entry.name,
    timezone: entry.timezone,
    anonymize_ips: entry.anonymizeIps,
    approvals: entry.approvals,
    events_retention_days: entry.eventsRetentionDays,
    week_start_day: entry.weekStartDay,
    archived: entry.archivedAt !== null,
  });
  const [old, present] = [shown(before), shown(after)];
  const changes: Change[] = [];
  for (const field of Object.keys(old) as (keyof typeof old)[]) {
    if (old[field] === present[field]) continue;
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
    throw new InvalidField("timezone", "invalid_choice", `"${timezone}" is not a valid choice.`);
  return name;
}
