/** Activity log of the project or organization, by day. */

import { useState } from "preact/hooks";
import { ChangeList } from "../components/change-list.tsx";
import { SearchField, Segments } from "../components/fields.tsx";
import { FilterChip } from "../components/filter-chip.tsx";
import { Filters } from "../components/filters.tsx";
import { Page } from "../components/page.tsx";
import { Button } from "../components/primitives.tsx";
import { Content, Empty } from "../components/states.tsx";
import { toast, toastError } from "../components/toast.tsx";
import { queryString, request } from "../lib/api.ts";
import { download, toCsv } from "../lib/csv.ts";
import { useResource } from "../lib/resource.ts";
import { useAddress } from "../lib/router.ts";
import { inProject, isAdmin, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { type ActivityEntry, changeLines, getActorName } from "../model/activity.ts";
import { useCohortNames } from "../model/definitions.ts";
import { restoreFlag } from "../model/flags.ts";

const w = messages.activity;
const pageSize = 100;
const dayMs = 86_400_000;
const kinds = [
  "",
  "FeatureFlag",
  "Cohort",
  "Dashboard",
  "Insight",
  "PersonalAPIKey",
  "Role",
  "OrganizationMembership",
];

export function Activity() {
  const { query, set } = useAddress();
  const [limit, setLimit] = useState(pageSize);
  useCohortNames();
  const where = query.where === "organization" && isAdmin.value ? "organization" : "project";
  const path = where === "project" ? inProject("activity_log/") : "/api/organizations/@current/activity_log/";
  const days = Number(query.since);
  const from = days > 0 ? new Date(Date.now() - days * dayMs).toISOString() : undefined;
  const wanted = (query.who ?? "").toLowerCase();
  const [scope = query.kind, item] = query.object?.split(/:(.*)/s) ?? [];
  const log = useResource<{ results: ActivityEntry[]; total_count: number }>(
    `activity ${project.value?.id} ${where} ${scope} ${item} ${query.by} ${query.since} ${limit}`,
    (signal) =>
      request(`${path}${queryString({ limit, scope, item_id: item, user: query.by, date_from: from })}`, {
        signal,
      }),
  );
  const objects = getObjects(log.data?.results ?? [], query.object);
  const members = useResource<{ results: { user: { uuid: string; first_name: string; email: string } }[] }>(
    "members",
    (signal) => request("/api/organizations/@current/members/?limit=500", { signal }),
  );
  const isFiltered = ["kind", "object", "by", "since", "who"].some((name) => query[name]);
  const isShown = (entry: ActivityEntry) =>
    wanted === "" ||
    `${getActorName(entry)} ${entry.user.email} ${entry.detail.name}`.toLowerCase().includes(wanted);
  const restore = async ({ item_id: id }: ActivityEntry) => {
    try {
      toast(messages.flags.restored((await restoreFlag(Number(id))).key));
      log.reload();
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <Page
      title={messages.frame.pages.activity}
      action={
        <Button
          icon="download"
          isDisabled={!log.data}
          onClick={() => {
            const rows = (log.data?.results ?? []).filter(isShown).map((entry) => ({
              time: entry.created_at,
              person: getActorName(entry),
              activity: entry.activity,
              kind: entry.scope,
              item: entry.detail.name ?? entry.item_id,
              changes: changeLines(entry).join("; "),
            }));
            download("activity.csv", toCsv(["time", "person", "activity", "kind", "item", "changes"], rows));
          }}
        >
          {w.exportCsv}
        </Button>
      }
    >
      <Filters
        search={
          <SearchField
            label={w.person}
            value={query.who ?? ""}
            onInput={(who) => set({ who: who || undefined })}
          />
        }
        count={["where", "kind", "object", "by", "since"].filter((name) => query[name]).length}
      >
        <Segments
          label={w.where}
          value={where}
          choices={[
            ["project", w.project],
            ["organization", w.organization],
          ]}
          disabledReason={!isAdmin.value && messages.frame.onlyAdmins}
          onChange={(next) => set({ where: next === "project" ? undefined : next })}
        />
        <FilterChip
          label={w.kind}
          value={query.kind ?? ""}
          choices={kinds.map((kind) => [kind, kind === "" ? w.allKinds : (w.scopes[kind] ?? kind)] as const)}
          onChange={(kind) => set({ kind, object: undefined })}
        />
        <FilterChip
          label={w.object}
          value={query.object ?? ""}
          choices={[
            ["", w.anyObject],
            ...objects.filter(([object]) => !query.kind || object.startsWith(`${query.kind}:`)),
          ]}
          onChange={(object) => set({ object })}
        />
        <FilterChip
          label={w.by}
          value={query.by ?? ""}
          choices={[
            ["", w.anyUser],
            ...(members.data?.results ?? []).map(
              ({ user }) => [user.uuid, user.first_name || user.email] as const,
            ),
            ["system", w.system],
          ]}
          onChange={(by) => set({ by })}
        />
        <FilterChip
          label={w.since}
          value={query.since ?? ""}
          choices={Object.entries(w.times).sort(([one], [other]) => Number(one) - Number(other))}
          onChange={(since) => set({ since })}
        />
      </Filters>
      <Content resource={log}>
        {({ results, total_count: total }) => {
          const found = results.filter(isShown);
          const deleted = lastDeletions(results);
          return (
            <>
              {found.length === 0 ? (
                isFiltered ? (
                  <Empty title={w.nothingFound} icon="search" />
                ) : (
                  <Empty title={w.empty} icon="activity" command="flagkeep flags disable KEY">
                    <p class="muted">{w.emptyHelp}</p>
                  </Empty>
                )
              ) : (
                <section class="card">
                  <ChangeList
                    entries={found}
                    actionsOf={(entry) =>
                      deleted.has(entry.id) && (
                        <Button
                          kind="quiet"
                          icon="history"
                          label={`${messages.flags.restore}: ${entry.detail.name}`}
                          onClick={() => void restore(entry)}
                        >
                          {messages.flags.restore}
                        </Button>
                      )
                    }
                  />
                </section>
              )}
              {results.length < total && (
                <div class="row">
                  <Button onClick={() => setLimit(limit + pageSize)}>{w.more}</Button>
                  {wanted !== "" && <span class="muted">{w.onlyLoaded(results.length)}</span>}
                </div>
              )}
            </>
          );
        }}
      </Content>
    </Page>
  );
}

/** Names of objects in the log, by scope and id; those seen before a filter was chosen stay. */
const knownObjects = new Map<number | undefined, Map<string, string>>();

function getObjects(entries: readonly ActivityEntry[], chosen: string | undefined): [string, string][] {
  const known = knownObjects.get(project.value?.id) ?? new Map<string, string>();
  knownObjects.set(project.value?.id, known);
  for (const { scope, item_id: id, detail } of entries) {
    const object = `${scope}:${id}`;
    // The newest entry has the present name.
    if (!known.has(object)) known.set(object, `${w.scopes[scope] ?? scope} ${detail.name || id}`);
  }
  const isUnknown = chosen !== undefined && !known.has(chosen);
  const all: [string, string][] = isUnknown ? [...known, [chosen, chosen]] : [...known];
  return all.sort(([, one], [, other]) => one.localeCompare(other));
}

/** Ids of deletions whose flag was not restored since; the newest entry comes first. */
function lastDeletions(entries: readonly ActivityEntry[]): ReadonlySet<string> {
  const seen = new Set<string>();
  const found = new Set<string>();
  for (const { id, scope, item_id: item, activity } of entries) {
    if (scope !== "FeatureFlag" || (activity !== "deleted" && activity !== "restored")) continue;
    if (!seen.has(item) && activity === "deleted") found.add(id);
    seen.add(item);
  }
  return found;
}
