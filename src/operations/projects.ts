/** Projects (contract: management-api 6.5). */

import { exampleProject as example } from "../accounts/api/project-schemas.ts";
import {
  ProjectFilter,
  ProjectPage,
  projectTag,
  projectWriter,
  readProjectQuery,
  usableProjects,
} from "../accounts/api/projects.ts";
import { unlimited } from "../accounts/limits.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { getOrganizations } from "../accounts/organizations.ts";
import { type Actor, type Context as AnyContext, listOperation } from "./operation.ts";

type Context = AnyContext<{ metadata: Metadata }>;

/** Undefined: every organization. */
function organizationsIn({ db }: Metadata, actor: Actor): string[] | undefined {
  if (actor.kind === "operator") return undefined;
  const { organizationIds } = actor.limits;
  return getOrganizations(db, actor.user.id)
    .map(({ id }) => id)
    .filter((id) => organizationIds.length === 0 || organizationIds.includes(id));
}

export const listAllProjects = listOperation({
  ...{ id: "projects.list", on: "user", tag: projectTag },
  summary: "List projects",
  description:
    "Projects that your key has access to, by id. Without the scope `project:read` only `id`, `uuid`, `name`, `organization` and `api_token`.",
  http: { method: "GET", path: "/api/projects", answer: "One page of projects.", allowsScopedKeys: true },
  input: ProjectFilter,
  output: ProjectPage,
  example,
  readQuery: readProjectQuery,
  run: ({ stores: { metadata }, actor }: Context, { limit, offset, isArchived }) => {
    const limits = actor.kind === "user" ? actor.limits : unlimited;
    const organizationIds = organizationsIn(metadata, actor);
    const all = usableProjects(metadata, { isArchived, organizationIds, limits });
    const shown = all.slice(offset, offset + limit).map(projectWriter(limits));
    return { count: all.length, results: shown };
  },
});

export const projectOperations = [listAllProjects];
