/** Resolves `@current`: only to organizations and projects that the user still belongs to. */

import type { Metadata } from "./metadata.ts";
import { getOrganizations, type Organization } from "./organizations.ts";
import type { Project } from "./project-directory.ts";
import { getLevel, type User } from "./users.ts";

/** The organization the user selected, else the oldest of the user's organizations. */
export function currentOrganization(
  { db }: Pick<Metadata, "db">,
  { id, currentOrganizationId }: User,
): (Organization & { level: number }) | undefined {
  const own = getOrganizations(db, id);
  return own.find((organization) => organization.id === currentOrganizationId) ?? own[0];
}

/** The open project the user selected, else the first of the user's organizations. */
export function currentProject(
  { db, projects }: Pick<Metadata, "db" | "projects">,
  { id, currentProjectId }: User,
): Project | undefined {
  const chosen = currentProjectId === null ? undefined : projects.find(currentProjectId);
  if (chosen?.archivedAt === null && getLevel(db, chosen.organizationId, id) > 0) return chosen;
  const own = new Set(getOrganizations(db, id).map((organization) => organization.id));
  return projects.list().find(({ organizationId }) => own.has(organizationId));
}
