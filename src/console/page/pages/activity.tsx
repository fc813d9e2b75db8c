/** Every change of the project, or of the organisation: one list by day. */

import { useState } from "preact/hooks";
import { useAddress } from "../lib/address.ts";
import { ask, queryText } from "../lib/api.ts";
import { download, toCsv } from "../lib/csv.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, isAdmin, project } from "../lib/session.ts";
import { type ActivityEntry, changeLines, whoOf } from "../model/activity.ts";
import { Button } from "../parts/basics.tsx";
import { ChangeList } from "../parts/change-list.tsx";
import { SearchField, Segments, Select } from "../parts/fields.tsx";
import { Page } from "../parts/page.tsx";
import { Content, Empty } from "../parts/states.tsx";
import { words } from "../words/index.ts";

const w = words.activity;
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
  const where = query.where === "organization" && isAdmin.value ? "organization" : "project";
  const path = where === "project" ? inProject("activity_log/") : "/api/organizations/@current/activity_log/";
  const days = Number(query.since);
  const from = days > 0 ? new Date(Date.now() - days * dayMs).toISOString() : undefined;
  const wanted = (query.who ?? "").toLowerCase();
  const log = useResource<{ results: ActivityEntry[]; total_count: number }>(
    `activity ${project.value?.id} ${where} ${query.kind} ${query.by} ${query.since} ${limit}`,
    (signal) =>
      ask(`${path}${queryText({ limit, scope: query.kind, user: query.by, date_from: from })}`, { signal }),
  );
  const members = useResource<{ results: { user: { uuid: string; first_name: string; email: string } }[] }>(
    "members",
    (signal) => ask("/api/organizations/@current/members/?limit=500", { signal }),
  );
  const isFiltered = ["kind", "by", "since", "who"].some((name) => query[name]);
  const isShown = (entry: ActivityEntry) =>
    wanted === "" ||
    `${whoOf(entry)} ${entry.user.email} ${entry.detail.name}`.toLowerCase().includes(wanted);
  return (
    <Page
      title={words.frame.pages.activity}
      action={
        <Button
          icon="download"
          isDisabled={!log.data}
          onClick={() => {
            const rows = (log.data?.results ?? []).filter(isShown).map((entry) => ({
              time: entry.created_at,
              person: whoOf(entry),
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
      <div class="filters">
        <Segments
          label={w.where}
          value={where}
          choices={[
            ["project", w.project],
            ["organization", w.organization],
          ]}
          refusal={!isAdmin.value && words.frame.onlyAdmins}
          onChange={(next) => set({ where: next === "project" ? undefined : next })}
        />
        <Select
          label={w.kind}
          isLabelHidden
          value={query.kind ?? ""}
          choices={kinds.map((kind) => [kind, kind === "" ? w.allKinds : (w.scopes[kind] ?? kind)] as const)}
          onChange={(kind) => set({ kind: kind || undefined })}
        />
        <Select
          label={w.by}
          isLabelHidden
          value={query.by ?? ""}
          choices={[
            ["", w.anybody],
            ...(members.data?.results ?? []).map(
              ({ user }) => [user.uuid, user.first_name || user.email] as const,
            ),
            ["system", w.system],
          ]}
          onChange={(by) => set({ by: by || undefined })}
        />
        <Select
          label={w.since}
          isLabelHidden
          value={query.since ?? ""}
          choices={Object.entries(w.times).sort(([one], [other]) => Number(one) - Number(other))}
          onChange={(since) => set({ since: since || undefined })}
        />
        <SearchField
          label={w.person}
          value={query.who ?? ""}
          onInput={(who) => set({ who: who || undefined })}
        />
      </div>
      <Content of={log}>
        {({ results, total_count: total }) => {
          const found = results.filter(isShown);
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
                  <ChangeList entries={found} />
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
