/** Overview: web analytics. Panels load and fail on their own; figures and chart are read first. */

import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { Field, Select } from "../../components/fields.tsx";
import { Page } from "../../components/page.tsx";
import { Button } from "../../components/primitives.tsx";
import { Empty, NotLoaded, Rows } from "../../components/states.tsx";
import { lazyPage } from "../../lib/lazy-page.ts";
import { useBackgroundResource, useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { usePropertyValues } from "../../model/definitions.ts";
import { useFlagChanges } from "../../model/flag-changes.ts";
import {
  type Facet,
  type FigureName,
  type Figures,
  facetNames,
  figureNames,
  getLabel,
  getView,
  panels,
  readFigures,
  readHasPageViews,
  readOnline,
  sharedMembers,
  type View,
} from "../../model/overview.ts";
import { Course } from "./course.tsx";
import { FigureCards } from "./figure-cards.tsx";
import { FlagChanges } from "./flag-changes.tsx";
import { Goals } from "./goals.tsx";
import { ListPanel } from "./list-panel.tsx";
import { Panel } from "./panel.tsx";

/** Loaded when a user opens it. */
const ShareDialog = lazyPage<Parameters<typeof import("../../components/share-dialog.tsx").ShareDialog>[0]>(
  () => import("../../components/share-dialog.tsx").then(({ ShareDialog }) => ShareDialog),
  NotLoaded,
);

const w = messages.overview;
const refreshMs = 60_000;
const onlineMs = 30_000;
const dayMs = 86_400_000;
/** Days that a range touches, for the list of flag changes. */
const rangeDays: Record<string, number> = {
  "0d": 1,
  "-24h": 2,
  "-7d": 8,
  "-30d": 31,
  "-90d": 91,
  "-12m": 366,
};
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs).toISOString().slice(0, 10);

export function Overview() {
  const { query, set } = useAddress();
  const view = getView(query);
  const key = `${project.value?.id} ${JSON.stringify(view)}`;
  const figure = figureNames.find((name) => name === query.figure) ?? "visitors";
  const [isSharing, setSharing] = useState(false);
  const figures = useResource<Figures>(
    `overview figures ${key}`,
    (signal) => readFigures(view, signal),
    refreshMs,
  );
  const changes = useFlagChanges(daysAgo(rangeDays[view.range] ?? 31));
  const hasViews = figures.data === undefined || (figures.data.views[0] ?? 0) > 0;
  const filter = (facet: Facet, value: string) => set({ [facet]: value }, true);
  return (
    <Page
      title={messages.frame.pages.overview}
      isWide
      action={
        <>
          <Online />
          <Button onClick={() => setSharing(true)}>{messages.share.share}</Button>
        </>
      }
    >
      {isSharing && (
        <ShareDialog
          item={{ overview: sharedMembers(view) }}
          name={messages.frame.pages.overview}
          onClose={() => setSharing(false)}
        />
      )}
      <Tools view={view} onChange={(changes) => set(changes, true)} />
      {!hasViews && view.filters.length === 0 ? (
        <NothingYet />
      ) : (
        <>
          <Panel resource={figures} rows={1}>
            {(data) => (
              <FigureCards
                figures={data}
                isCompared={view.comparison !== "none"}
                current={figure}
                onChoose={(name: FigureName) => set({ figure: name === "visitors" ? undefined : name })}
              />
            )}
          </Panel>
          <Course view={view} figure={figure} resourceKey={key} />
          <div class="overview-panels">
            {panels.map(([name, tabs]) => (
              <ListPanel
                key={name}
                label={w.panels[name]}
                tabs={tabs}
                view={view}
                resourceKey={key}
                onFilter={filter}
              />
            ))}
            <Goals view={view} resourceKey={key} onChoose={(goal) => set({ goal }, true)} />
            <FlagChanges changes={changes} />
          </div>
        </>
      )}
    </Page>
  );
}

/** A project without page views needs the SDK; one with earlier ones another range. */
function NothingYet() {
  const hasAny = useResource<boolean>(`overview has page views ${project.value?.id}`, readHasPageViews);
  if (hasAny.data === undefined) return <Rows />;
  if (hasAny.data) return <Empty title={w.nothing} icon="chart" />;
  return (
    <Empty title={w.empty} icon="chart" command="flagkeep web">
      <p class="muted">{w.emptyText}</p>
      <Button href={to("start")}>{w.goStart}</Button>
    </Empty>
  );
}

function Online() {
  const online = useBackgroundResource<number>(`overview online ${project.value?.id}`, readOnline, onlineMs);
  if (online.data === undefined) return null;
  return (
    <span class="online" title={w.onlineHelp}>
      <span class="online-dot" aria-hidden="true" />
      {w.online(online.data)}
    </span>
  );
}

/** Range, comparison, site, and the active filters as chips. */
function Tools({
  view,
  onChange,
}: {
  view: View;
  onChange: (changes: Record<string, string | undefined>) => void;
}) {
  const [isAdding, setAdding] = useState(false);
  const sites = usePropertyValues("event", "$host");
  const site = view.filters.find(([facet]) => facet === "site")?.[1] ?? "";
  const choices = Object.entries;
  return (
    <div class="overview-tools">
      {(sites.length > 1 || site !== "") && (
        <Select
          label={w.site}
          isLabelHidden
          value={site}
          choices={[["", w.allSites], ...new Set([...sites, ...(site ? [site] : [])])].map((item) =>
            Array.isArray(item) ? ([item[0]!, item[1]!] as const) : ([item, item] as const),
          )}
          onChange={(value) => onChange({ site: value || undefined })}
        />
      )}
      <Select
        label={w.range}
        isLabelHidden
        value={view.range}
        choices={choices(w.ranges)}
        onChange={(range) => onChange({ range })}
      />
      <Select
        label={w.comparison}
        isLabelHidden
        value={view.comparison}
        choices={choices(w.comparisons)}
        onChange={(compare) => onChange({ compare })}
      />
      <Button icon="plus" onClick={() => setAdding(true)}>
        {w.addFilter}
      </Button>
      {view.filters.map(([facet, value]) => {
        const name = w.facetIs(w.facets[facet], getLabel(facet, value));
        return (
          <span key={facet} class="chip">
            {name}
            <Button
              kind="quiet"
              icon="close"
              label={w.removeFilter(name)}
              onClick={() => onChange({ [facet]: undefined })}
            />
          </span>
        );
      })}
      {view.goal !== undefined && (
        <span class="chip">
          {w.facetIs(w.goal, view.goal)}
          <Button
            kind="quiet"
            icon="close"
            label={w.removeFilter(w.facetIs(w.goal, view.goal))}
            onClick={() => onChange({ goal: undefined })}
          />
        </span>
      )}
      {isAdding && (
        <AddFilter
          onClose={() => setAdding(false)}
          onAdd={(facet, value) => {
            setAdding(false);
            onChange({ [facet]: value });
          }}
        />
      )}
    </div>
  );
}

function AddFilter({
  onClose,
  onAdd,
}: {
  onClose: () => void;
  onAdd: (facet: Facet, value: string) => void;
}) {
  const [facet, setFacet] = useState<Facet>("page");
  const [value, setValue] = useState("");
  return (
    <Dialog
      title={w.addFilterTitle}
      onClose={onClose}
      onSubmit={() => value.trim() !== "" && onAdd(facet, value.trim())}
      actions={
        <Button kind="main" type="submit">
          {messages.frame.add}
        </Button>
      }
    >
      <Select
        label={w.filterBy}
        value={facet}
        choices={facetNames.map((name) => [name, w.facets[name]] as const)}
        onChange={setFacet}
      />
      <Field label={w.filterValue} value={value} onInput={setValue} isRequired autofocus />
    </Dialog>
  );
}
