/** Dashboards of the project; those that were created with flags are in a group of their own. */

import { useState } from "preact/hooks";
import { Field, SearchField, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Page } from "../../components/page.tsx";
import { Badge, Button, RelativeTime } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { type Column, DataTable } from "../../components/table.tsx";
import { queryString, request } from "../../lib/api.ts";
import type { DashboardPage } from "../../lib/api-types.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress, useSearch } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { useShortcuts } from "../../lib/shortcuts.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  createFromTemplate,
  type DashboardShort,
  type TemplateName,
  usageFlagKey,
} from "../../model/dashboard.ts";
import { userName } from "../../model/flags.ts";

const w = lazyMessages.dashboards;
const ownMax = 500;
const generatedMax = 200;

const columns: Column<DashboardShort>[] = [
  {
    id: "name",
    title: w.columns.name,
    width: "minmax(0, 3fr)",
    cell: ({ id, name, pinned }) => (
      <>
        <a href={to(`dashboards/${id}`)}>{name || `#${id}`}</a>{" "}
        {pinned && <Badge tone="accent">{w.pinned}</Badge>}
      </>
    ),
  },
  {
    id: "by",
    title: w.columns.by,
    width: "minmax(0, 1fr)",
    isWideOnly: true,
    cell: ({ created_by: by }) => userName(by),
  },
  {
    id: "created",
    title: w.columns.created,
    width: "9rem",
    cell: ({ created_at: at }) => <RelativeTime at={at} />,
  },
];

function useDashboards(mode: "default" | "template", search: string | undefined, limit: number) {
  return useResource<DashboardPage>(`dashboards ${project.value?.id} ${mode} ${search} ${limit}`, (signal) =>
    request(inProject(`dashboards/${queryString({ creation_mode: mode, search, limit })}`), { signal }),
  );
}

export function Dashboards() {
  const address = useAddress();
  const { query, go } = address;
  const [text, setText] = useSearch(address);
  const [isCreating, setCreating] = useState(false);
  const list = useDashboards("default", query.search, ownMax);
  useShortcuts({ n: () => setCreating(true) });
  const button = (
    <Button kind="main" icon="plus" onClick={() => setCreating(true)}>
      {w.newDashboard}
    </Button>
  );
  return (
    <Page title={messages.frame.pages.dashboards} action={button}>
      <div class="filters">
        <SearchField label={w.search} value={text} onInput={setText} />
      </div>
      <Content resource={list}>
        {({ results }) =>
          results.length > 0 ? (
            <DataTable
              label={messages.frame.pages.dashboards}
              columns={columns}
              count={results.length}
              rowAt={(index) => results[index]}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(`dashboards/${id}`)}
              rowHeight={40}
              narrowHeight={52}
            />
          ) : query.search ? (
            <p class="muted">{w.nothingFound}</p>
          ) : (
            <Empty title={w.empty} icon="dashboards">
              <p class="muted">{w.emptyText}</p>
              <Button href={to("explore")}>{w.goExplore}</Button>
            </Empty>
          )
        }
      </Content>
      <Generated search={query.search} />
      {isCreating && (
        <NewDashboard onClose={() => setCreating(false)} onCreated={(id) => go(`dashboards/${id}`)} />
      )}
    </Page>
  );
}

/** Dashboards that were created with flags: collapsed, unless a search finds some. */
function Generated({ search }: { search: string | undefined }) {
  const [isOpen, setOpen] = useState(false);
  const isListed = isOpen || Boolean(search);
  const list = useDashboards("template", search, isListed ? generatedMax : 1);
  const { count = 0, results = [] } = list.data ?? {};
  if (count === 0) return null;
  return (
    <details
      class="generated"
      open={isListed}
      onToggle={(event) => {
        if (!search) setOpen(event.currentTarget.open);
      }}
    >
      <summary>{w.generated(count)}</summary>
      <ul class="columned">
        {results.map(({ id, name }) => (
          <li key={id}>
            <a href={to(`dashboards/${id}`)}>{usageFlagKey(name) || `#${id}`}</a>
          </li>
        ))}
      </ul>
      {isListed && count > results.length && <p class="muted">{w.generatedLimit(results.length)}</p>}
    </details>
  );
}

function NewDashboard({ onClose, onCreated }: { onClose: () => void; onCreated: (id: number) => void }) {
  const form = useForm({ name: "", template: "blank" as TemplateName, flagKey: "" }, async (values) =>
    onCreated(await createFromTemplate(values.name, values.template, values.flagKey.trim())),
  );
  const { name, template } = form.values;
  return (
    <FormDialog title={w.newDashboard} form={form} action={w.create} onClose={onClose}>
      <Field label={w.name} {...form.input("name")} isRequired autofocus />
      <Select
        label={w.template}
        value={template}
        choices={Object.entries(w.templates) as [TemplateName, string][]}
        onChange={(chosen) => {
          form.set({ template: chosen });
          if (name === "" || name === w.templates[template])
            form.set({ name: chosen === "blank" ? "" : w.templates[chosen] });
        }}
      />
      {template === "rollout" && <Field label={w.templateFlag} {...form.input("flagKey")} isRequired />}
    </FormDialog>
  );
}
