/** The list of dashboards. */

import { useState } from "preact/hooks";
import { Dialog } from "../components/dialog.tsx";
import { Field } from "../components/fields.tsx";
import { Page } from "../components/page.tsx";
import { Badge, Button, RelativeTime } from "../components/primitives.tsx";
import { Content, Empty } from "../components/states.tsx";
import { type Column, DataTable } from "../components/table.tsx";
import { errorMessage, queryString, request } from "../lib/api.ts";
import { useResource } from "../lib/resource.ts";
import { to, useAddress } from "../lib/router.ts";
import { inProject, project } from "../lib/session.ts";
import { useShortcuts } from "../lib/shortcuts.ts";
import { words } from "../messages/index.ts";
import { type ShortUser, userName } from "../model/flags.ts";

const w = words.dashboards;

interface Dashboard {
  id: number;
  name: string;
  pinned: boolean;
  created_at: string;
  created_by: ShortUser | null;
}

const columns: Column<Dashboard>[] = [
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
    id: "made",
    title: w.columns.made,
    width: "9rem",
    cell: ({ created_at: at }) => <RelativeTime at={at} />,
  },
];

export function Dashboards() {
  const { go } = useAddress();
  const [isMaking, setMaking] = useState(false);
  const [name, setName] = useState("");
  const [error, setError] = useState<string>();
  const list = useResource<{ results: Dashboard[] }>(`dashboards ${project.value?.id}`, (signal) =>
    request(inProject(`dashboards/${queryString({ limit: 500 })}`), { signal }),
  );
  useShortcuts({ n: () => setMaking(true) });
  const button = (
    <Button kind="main" icon="plus" onClick={() => setMaking(true)}>
      {w.newDashboard}
    </Button>
  );
  return (
    <Page title={words.frame.pages.dashboards} action={button}>
      <Content of={list}>
        {({ results }) =>
          results.length === 0 ? (
            <Empty title={w.empty} icon="dashboards">
              <p class="muted">{w.emptyText}</p>
              <Button href={to("explore")}>{w.goExplore}</Button>
            </Empty>
          ) : (
            <DataTable
              label={words.frame.pages.dashboards}
              columns={columns}
              count={results.length}
              rowAt={(index) => results[index]}
              keyOf={({ id }) => id}
              onOpen={({ id }) => go(`dashboards/${id}`)}
              narrowHeight={52}
            />
          )
        }
      </Content>
      {isMaking && (
        <Dialog
          title={w.newDashboard}
          onClose={() => setMaking(false)}
          onSubmit={() =>
            request<Dashboard>(inProject("dashboards/"), { method: "POST", body: { name } }).then(
              ({ id }) => go(`dashboards/${id}`),
              (failure) => setError(errorMessage(failure)),
            )
          }
          actions={
            <Button kind="main" type="submit">
              {w.create}
            </Button>
          }
        >
          <Field label={w.name} value={name} onInput={setName} error={error} isRequired autofocus />
        </Dialog>
      )}
    </Page>
  );
}
