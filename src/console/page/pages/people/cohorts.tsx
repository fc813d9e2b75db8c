/** The list of cohorts. */

import { useEffect, useState } from "preact/hooks";
import { to, useAddress } from "../../lib/address.ts";
import { ask, queryText } from "../../lib/api.ts";
import { number } from "../../lib/format.ts";
import { useKeys } from "../../lib/keys.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import type { Condition } from "../../model/flags.ts";
import { Badge, Button, When } from "../../parts/basics.tsx";
import { SearchField } from "../../parts/fields.tsx";
import { Page } from "../../parts/page.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { type Column, DataTable } from "../../parts/table.tsx";
import { words } from "../../words/index.ts";

const w = words.cohorts;
/** How often those that are being counted are looked at. */
export const countingMs = 1_000;

export interface Cohort {
  id: number;
  name: string;
  description: string;
  is_static: boolean;
  is_calculating: boolean;
  last_calculation: string | null;
  count: number | null;
  filters: { properties?: { type?: string; values?: ConditionGroup[] } };
}

export interface ConditionGroup {
  type: string;
  values: (Condition | ConditionGroup)[];
}

/** Flags that look at each cohort, by its id. */
type FlagsByCohort = Record<string, { count: number; flags: { id: number; key: string }[] }>;

const shownFlags = 3;

const columnsOf = (uses: FlagsByCohort | undefined): Column<Cohort>[] => [
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
    cell: ({ last_calculation: at }) => <When at={at} />,
  },
];

export function useFlagsByCohort(): FlagsByCohort | undefined {
  return useResource<FlagsByCohort>(`flags by cohort ${project.value?.id}`, (signal) =>
    ask(inProject("feature_flags/by_cohort/"), { signal }),
  ).data;
}

export function Cohorts() {
  const { query, set, go } = useAddress();
  const [isCounting, setCounting] = useState(false);
  const list = useResource<{ results: Cohort[] }>(
    `cohorts ${project.value?.id} ${query.search}`,
    (signal) => ask(inProject(`cohorts/${queryText({ search: query.search, limit: 500 })}`), { signal }),
    isCounting ? countingMs : undefined,
  );
  const uses = useFlagsByCohort();
  useEffect(
    () => setCounting(list.data?.results.some((cohort) => cohort.is_calculating) === true),
    [list.data],
  );
  useKeys({ n: () => go("cohorts/new") });
  const button = (
    <Button kind="main" icon="plus" href={to("cohorts/new")}>
      {w.newCohort}
    </Button>
  );
  return (
    <Page title={words.frame.pages.cohorts} action={button}>
      <div class="filters">
        <SearchField
          label={w.search}
          value={query.search ?? ""}
          onInput={(search) => set({ search: search || undefined })}
        />
      </div>
      <Content of={list}>
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
              label={words.frame.pages.cohorts}
              columns={columnsOf(uses)}
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
