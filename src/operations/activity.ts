/** Activity of projects and organizations (requirement: activity endpoints; contract: management-api 5.10). */

import type { Static } from "@sinclair/typebox";
import {
  ActivityFilterQuery,
  ActivityPage,
  EntryBody,
  exampleActivity,
  listEntries,
  readActivityFilter,
  readActivityPage,
  activityTag as tag,
  toActivityFilter,
} from "../accounts/api/activity.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { list } from "../http/schemas.ts";
import {
  type CommandForm,
  type CommandResult,
  cursorListOperation,
  type OrganizationContext,
  type ProjectContext,
} from "./operation.ts";
import { assertAdmin } from "./permissions.ts";

type Entry = Static<typeof EntryBody>;

/** Both lists. */
const ofList = {
  tag,
  input: ActivityFilterQuery,
  output: ActivityPage,
  example: exampleActivity.results[0],
  readQuery: (query: URLSearchParams) => ({
    ...readActivityPage(query),
    filter: readActivityFilter(query),
  }),
};
const entries: CommandResult = {
  schema: list(EntryBody),
  build: ({ output }: { output: { results: Entry[] } }) => output.results,
};
/** One line per entry. */
const getCommand = (name: string, description: string): CommandForm<Static<typeof ActivityFilterQuery>> => ({
  name,
  description,
  examples: [`${name} --limit 50 --json`],
  options: {
    limit: { description: "page size; default: 10" },
    page: { description: "page, from 1" },
    date_from: { description: "start time, inclusive" },
    date_to: { description: "end time, exclusive" },
  },
  result: entries,
  done: (all: readonly Entry[]) =>
    all
      .map(({ created_at: at, user, activity, scope, detail }) => {
        const fields = detail.changes.map(({ field }) => field).join(", ");
        const who = user.email ?? user.first_name;
        return `${at}  ${who}  ${activity} ${scope} ${detail.name}${fields && ` (${fields})`}`;
      })
      .join("\n"),
});

const listOfProject = cursorListOperation({
  ...ofList,
  id: "activity.list",
  on: "project",
  scope: "activity_log:read",
  summary: "List the activity of a project",
  description:
    "Flags and their role access (`FeatureFlag`), cohorts (`Cohort`), webhooks (`Webhook`), share links (`ShareLink`), annotations (`Annotation`) and the project itself (`Team`).",
  http: { method: "GET", path: "/activity_log", answer: "Newest first." },
  cli: getCommand("activity list", "List the activity of a project, newest first."),
  mcp: { name: "list_activity" },
  run: ({ stores, project }: ProjectContext<{ metadata: Metadata }>, { filter, limit, page }) =>
    listEntries(
      stores,
      { projectId: project.id, ...toActivityFilter(stores.metadata, filter) },
      { limit, page },
    ),
});

const listOfOrganization = cursorListOperation({
  ...ofList,
  id: "activity.organization",
  on: "organization",
  scope: "activity_log:read",
  summary: "List the activity of an organization",
  description:
    "Personal keys (`PersonalAPIKey`), roles (`Role`), users (`User`), the organization (`Organization`) and its projects (`Team`). Admins and owners only.",
  http: { method: "GET", path: "/activity_log", answer: "Newest first." },
  cli: getCommand("activity organization", "List the activity of the organization, newest first."),
  run: (context: OrganizationContext<{ metadata: Metadata }>, { filter, limit, page }) => {
    assertAdmin(context);
    const { stores, organization } = context;
    const target = { organizationId: organization.id, ...toActivityFilter(stores.metadata, filter) };
    return listEntries(stores, target, { limit, page });
  },
});

/** In the order of the documentation. */
export const activityOperations = [listOfProject, listOfOrganization];
