/** What `@current` means for a user: only where the user still belongs, whatever was chosen before. */

import type { Metadata } from "./metadata.ts";
import { type Organization, organizationsOf } from "./organizations.ts";
import type { Project } from "./project-directory.ts";
import { levelOf, type User } from "./users.ts";

/** The organisation a user works in: the chosen one, else the oldest of the user's own. */
export function currentOrganization(
  { db }: Pick<Metadata, "db">,
  { id, currentOrganizationId }: User,
): (Organization & { level: number }) | undefined {
  const own = organizationsOf(db, id);
  return own.find((organization) => organization.id === currentOrganizationId) ?? own[0];
}

/** The open project a user works in: the chosen one, else the first of the user's organisations. */
export function currentProject(
  { db, projects }: Pick<Metadata, "db" | "projects">,
  { id, currentProjectId }: User,
): Project | undefined {
  const chosen = currentProjectId === null ? undefined : projects.find(currentProjectId);
  if (chosen?.archivedAt === null && levelOf(db, chosen.organizationId, id) > 0) return chosen;
  const own = new Set(organizationsOf(db, id).map((organization) => organization.id));
  return projects.list().find(({ organizationId }) => own.has(organizationId));
}
