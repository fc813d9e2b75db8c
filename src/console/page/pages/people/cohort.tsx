/** A cohort, existing or new: its conditions and members. */

import { useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import {
  type ApprovalRequired,
  ChangeRequestDialog,
  needsApproval,
} from "../../components/change-request-dialog.tsx";
import { Chart } from "../../components/chart.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, Tabs } from "../../components/primitives.tsx";
import { Proposals } from "../../components/proposals.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { queryString, request } from "../../lib/api.ts";
import { periodNames } from "../../lib/format.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { type Cohort, cohortDifferences } from "../../model/cohorts.ts";
import type { Person } from "../../model/people.ts";
import { CohortEditor } from "./cohort-editor.tsx";
import { type CohortUses, countingMs, useFlagsByCohort } from "./cohorts.tsx";
import { PersonTable } from "./persons.tsx";

const w = lazyMessages.cohorts;
const pageSize = 100;

export function CohortPage() {
  const { id = "" } = useRoute().params as { id?: string };
  const isNew = id === "new";
  const { go, query, set } = useAddress();
  const [isDeleting, setDeleting] = useState(false);
  const [rejected, setRejected] = useState<ApprovalRequired>();
  const [proposed, setProposed] = useState(0);
  /** Counts the changes that the form has to show. */
  const [approved, setApproved] = useState(0);
  const uses = useFlagsByCohort()?.[id];
  const path = inProject(`cohorts/${encodeURIComponent(id)}/`);
  const [isCounting, setCounting] = useState(false);
  const cohort = useResource<Cohort>(
    isNew ? null : `cohort ${project.value?.id} ${id}`,
    (signal) => request(path, { signal }),
    isCounting ? countingMs : undefined,
  );
  const found = cohort.data;
  useEffect(() => setCounting(found?.is_calculating === true), [found]);
  const readAgain = async () => {
    try {
      cohort.replace(await request<Cohort>(path));
      setApproved(approved + 1);
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <Page
      title={isNew ? w.newCohort : (found?.name ?? messages.frame.pages.cohorts)}
      action={
        found && (
          <Button kind="danger" onClick={() => setDeleting(true)}>
            {w.delete}
          </Button>
        )
      }
    >
      {isNew ? (
        <CohortEditor key="new" onSaved={(created) => go(`cohorts/${created.id}`)} />
      ) : (
        <Content resource={cohort}>
          {(data) => (
            <>
              <p>
                <Badge>{data.is_static ? w.static : w.dynamic}</Badge>{" "}
                <span class="muted">
                  {data.is_calculating ? w.counting : data.count === null ? "" : w.membersCount(data.count)}
                </span>
              </p>
              <Sizes id={data.id} version={data.last_calculation ?? ""} />
              <UsedBy uses={uses} />
              <UsedByInsights id={data.id} />
              <Proposals
                target={{ cohort_id: data.id }}
                version={JSON.stringify(data)}
                round={proposed}
                disabledReason={false}
                getLines={({ changes }) => cohortDifferences(data, changes)}
                onDecided={(how) => how === "approve" && void readAgain()}
              />
              <Tabs
                label={w.tabsLabel}
                tabs={Object.entries(w.tabs) as [Tab, string][]}
                current={getTab(query.tab, data)}
                onChoose={(tab) => set({ tab }, true)}
              />
              {/* Hidden, not removed, to preserve its text. */}
              <div hidden={getTab(query.tab, data) !== "conditions"}>
                <CohortEditor
                  key={`${data.id} ${approved}`}
                  cohort={data}
                  criticalFlags={uses?.critical_flags ?? []}
                  onSaved={cohort.replace}
                  onRejected={setRejected}
                />
              </div>
              {getTab(query.tab, data) === "members" && (
                <Members id={data.id} version={data.last_calculation ?? ""} />
              )}
            </>
          )}
        </Content>
      )}
      {isDeleting && found && (
        <ConfirmDialog
          title={w.deleteTitle(found.name)}
          text={w.deleteText}
          action={w.delete}
          onClose={() => setDeleting(false)}
          onYes={() => {
            request(path, { method: "PATCH", body: { deleted: true } }).then(
              () => {
                toast(w.deleted(found.name));
                go("cohorts");
              },
              (error) => {
                if (needsApproval(error)) setRejected({ cohort: found, changes: { deleted: true } });
                else toastError(error);
              },
            );
          }}
        />
      )}
      {rejected && (
        <ChangeRequestDialog
          {...rejected}
          onClose={() => setRejected(undefined)}
          onProposed={() => setProposed(proposed + 1)}
        />
      )}
    </Page>
  );
}

/** Size over time; one day is no course. */
function Sizes({ id, version }: { id: number; version: string }) {
  const sizes = useBackgroundResource<{ results: { day: string; count: number }[] }>(
    `sizes of ${id} ${version}`,
    (signal) => request(inProject(`cohorts/${id}/sizes/`), { signal }),
  );
  const days = sizes.data?.results ?? [];
  const [first] = days;
  const last = days.at(-1);
  if (first === undefined || last === undefined) return null;
  if (days.length === 1) return <p class="muted">{w.sizeLater}</p>;
  return (
    <section class="card stack tight">
      <h2>{w.sizeTitle}</h2>
      <Chart
        label={w.sizeTitle}
        summary={w.sizeSummary(first.count, last.count)}
        names={periodNames(days.map(({ day }) => day))}
        series={[{ name: w.columns.size, values: days.map(({ count }) => count) }]}
      />
    </section>
  );
}

type Tab = keyof typeof w.tabs;

/** A static cohort is its members; of a dynamic one the definition comes first. */
function getTab(asked: string | undefined, { is_static: isStatic }: Cohort): Tab {
  return asked !== undefined && asked in w.tabs ? (asked as Tab) : isStatic ? "members" : "conditions";
}

const insightsMax = 500;

/** Whether a query has a condition on a cohort. */
function queriesCohort(part: unknown, id: number): boolean {
  if (typeof part !== "object" || part === null) return false;
  const { type, value } = part as { type?: unknown; value?: unknown };
  if (type === "cohort" && [value].flat().some((member) => String(member) === String(id))) return true;
  return Object.values(part).some((inner) => queriesCohort(inner, id));
}

/** Insights with a condition on the cohort, and the dashboards that show them. */
function UsedByInsights({ id }: { id: number }) {
  const list = useBackgroundResource<{
    results: { id: number; name: string; query: unknown; dashboards: number[] }[];
  }>(`insights of cohorts ${project.value?.id}`, (signal) =>
    request(inProject(`insights/${queryString({ limit: insightsMax })}`), { signal }),
  );
  const using = (list.data?.results ?? []).filter(({ query }) => queriesCohort(query, id));
  if (using.length === 0) return null;
  return (
    <p>
      {w.usedByTiles}{" "}
      {using.map(({ id: insight, name, dashboards: [first] }) => (
        <span key={insight}>
          {first === undefined ? name : <a href={to(`dashboards/${first}`)}>{name || `#${insight}`}</a>}{" "}
        </span>
      ))}
    </p>
  );
}

const unused: CohortUses = { count: 0, flags: [], critical_flags: [] };

/** Flags that use the cohort. */
function UsedBy({ uses: { count, flags } = unused }: { uses?: CohortUses | undefined }) {
  if (count === 0) return null;
  return (
    <p>
      {w.usedBy}{" "}
      {flags.map((flag) => (
        <a key={flag.id} href={to(`flags/${flag.id}`)}>
          {flag.key}{" "}
        </a>
      ))}
      {count > flags.length && w.moreFlags(count - flags.length)}
    </p>
  );
}

function Members({ id, version }: { id: number; version: string }) {
  const [limit, setLimit] = useState(pageSize);
  const members = useResource<{ results: Person[]; next: string | null }>(
    `members of ${id} ${version} ${limit}`,
    (signal) => request(inProject(`cohorts/${id}/persons/${queryString({ limit })}`), { signal }),
  );
  return (
    <section class="stack">
      <Content resource={members}>
        {({ results, next }) =>
          results.length === 0 ? (
            <Empty title={w.noMembers} icon="persons" />
          ) : (
            <>
              <PersonTable label={w.members} persons={results} />
              {next && (
                <div>
                  <Button onClick={() => setLimit(limit + pageSize)}>{lazyMessages.people.more}</Button>
                </div>
              )}
            </>
          )
        }
      </Content>
    </section>
  );
}
