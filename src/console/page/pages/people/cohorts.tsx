import { useEffect, useState } from "preact/hooks";
import { SearchField } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { Waiting } from "../../components/waiting.tsx";
import { queryString, request } from "../../lib/api.ts";
import { number } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { useShortcuts } from "../../lib/shortcuts.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { Cohort } from "../../model/cohorts.ts";

const w = lazyMessages.cohorts;
/** Poll interval of cohorts that are being calculated. */
export const countingMs = 1_000;

/** Flags that use a cohort. */
export interface CohortUses {
  count: number;
  flags: { id: number; key: string }[];
  /** Keys of the critical flags that a change of the cohort affects, also through other flags. */
  critical_flags: string[];
}

/** Flags that use each cohort, by its id. */
type FlagsByCohort = Record<string, CohortUses>;

const shownFlags = 3;

const getColumns = (uses: FlagsByCohort | undefined): Column<Cohort>[] => [
  {
    id: "name",
    title: w.columns.name,
    width: "minmax(0, 3fr)",
    cell: ({ id, name, description }) => (
      <>
        <a href={to(`cohorts/${id}`)}>{name}</a>
        <span class="sub">{description}</span>
      </>
    ),
  },
  {
    id: "kind",
    title: w.columns.kind,
    width: "8rem",
    isWideOnly: true,
    cell: ({ is_static: isStatic }) => <Badge>{isStatic ? w.static : w.dynamic}</Badge>,
  },
  {
    id: "size",
    title: w.columns.size,
    width: "6rem",
    isNumber: true,
    cell: ({ count, is_calculating: isCounting }) =>
      isCounting ? w.counting : count === null ? "–" : number(count),
  },
  {
    id: "flags",
    title: w.columns.flags,
    width: "minmax(0, 2fr)",
    isWideOnly: true,
    cell: ({ id }) => {
      const { count = 0, flags = [] } = uses?.[id] ?? {};
      const more = count - shownFlags;
      return (
        <>
          {flags.slice(0, shownFlags).map((flag) => (
            <a key={flag.id} href={to(`flags/${flag.id}`)}>
              {flag.key}{" "}
            </a>
          ))}
          {more > 0 && <span class="muted">{w.moreFlags(more)}</span>}
        </>
      );
    },
  },
  {
    id: "computed",
    title: w.columns.computed,
    width: "9rem",
    isWideOnly: true,
    cell: ({ last_calculation: at }) => <RelativeTime at={at} />,
  },
];

export function useFlagsByCohort(): FlagsByCohort | undefined {
  return useResource<FlagsByCohort>(`flags by cohort ${project.value?.id}`, (signal) =>
    request(inProject("feature_flags/by_cohort/"), { signal }),
  ).data;
}

export function Cohorts() {
  const { query, set, go } = useAddress();
  const [isCounting, setCounting] = useState(false);
  const list = useResource<{ results: Cohort[] }>(
    `cohorts ${project.value?.id} ${query.search}`,
    (signal) =>
      request(inProject(`cohorts/${queryString({ search: query.search, limit: 500 })}`), { signal }),
    isCounting ? countingMs : undefined,
  );
  const uses = useFlagsByCohort();
  useEffect(
    () => setCounting(list.data?.results.some((cohort) => cohort.is_calculating) === true),
    [list.data],
  );
  useShortcuts({ n: () => go("cohorts/new") });
  const button = (
    <Button kind="main" icon="plus" href={to("cohorts/new")}>
      {w.newCohort}
    </Button>
  );
  return (
    <Page title={messages.frame.pages.cohorts} action={button}>
      <div class="filters">
        <SearchField
          label={w.search}
          value={query.search ?? ""}
          onInput={(search) => set({ search: search || undefined })}
        />
      </div>
      <Waiting round={0} />
      <Content resource={list}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty
              title={query.search ? w.nothingFound : w.empty}
              icon="cohorts"
              command="flagkeep flags import FILE"
            >
              {!query.search && (
                <>
                  <p class="muted">{w.emptyText}</p>
                  <Button kind="main" icon="plus" href={to("cohorts/new")}>
                    {w.firstCohort}
                  </Button>
                </>
              )}
            </Empty>
          ) : (
            <DataTable
              label={messages.frame.pages.cohorts}
              columns={getColumns(uses)}
              count={results.length}
              rowAt={(index) => results[index]}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(`cohorts/${id}`)}
              rowHeight={56}
              narrowHeight={60}
            />
          )
        }
      </Content>
    </Page>
  );
}
