/** Adds a tile to a dashboard: an insight that exists, a new SQL statement, a text, or the list of flag changes. */

import { useState } from "preact/hooks";
import { Area, Field, SearchField, Segments } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast } from "../../components/toast.tsx";
import { queryString, request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  type BoardInsight,
  changeTile,
  flagChangesText,
  type ShownDashboard,
} from "../../model/dashboard.ts";

const w = lazyMessages.dashboards;
const listedMax = 30;
type TileKind = keyof typeof w.tileKinds;

export function AddTile({
  dashboard,
  onClose,
  onAdded,
}: {
  dashboard: ShownDashboard;
  onClose: () => void;
  onAdded: () => void;
}) {
  const send = async (sending: Promise<unknown>, added: string) => {
    await sending;
    toast(w.added(added));
    onAdded();
  };
  const addText = (body: string, added: string) =>
    send(changeTile(dashboard, undefined, { text: { body } }), added);
  const form = useForm(
    { kind: "insight" as TileKind, name: "", statement: "", text: "" },
    ({ kind, name, statement, text }) => {
      switch (kind) {
        case "sql": {
          const query = { kind: "DataVisualizationNode", source: { kind: "HogQLQuery", query: statement } };
          const body = { name, query, dashboards: [dashboard.id], saved: true };
          return send(request(inProject("insights/"), { method: "POST", body }), name);
        }
        case "text":
          return addText(text, w.tileKinds.text);
        case "changes":
          return addText(flagChangesText, w.changes);
        // Added by a choice.
        case "insight":
          return undefined;
      }
    },
  );
  const { kind, text } = form.values;
  return (
    <FormDialog
      title={w.addTile}
      form={form}
      action={w.addTile}
      isDisabled={kind === "text" && text.trim() === ""}
      onClose={onClose}
      actions={kind === "insight" && <Button href={to("explore")}>{w.goExplore}</Button>}
    >
      <Segments
        label={w.addTile}
        choices={Object.entries(w.tileKinds) as [TileKind, string][]}
        {...form.choice("kind")}
      />
      {kind === "insight" && (
        <InsightChoice
          dashboard={dashboard}
          onChoose={({ id, name: chosen, dashboards }) =>
            void form.run(() =>
              send(
                request(inProject(`insights/${id}/`), {
                  method: "PATCH",
                  body: { dashboards: [...dashboards, dashboard.id] },
                }),
                chosen,
              ),
            )
          }
        />
      )}
      {kind === "sql" && (
        <>
          <Field label={w.name} {...form.input("name")} isRequired />
          <Area label={w.statement} {...form.input("statement")} rows={5} />
        </>
      )}
      {kind === "text" && <Area label={w.text} {...form.input("text")} rows={5} />}
      {kind === "changes" && <p class="help">{w.changesHelp}</p>}
    </FormDialog>
  );
}

/** Insights of the project that the dashboard does not show yet. */
function InsightChoice({
  dashboard,
  onChoose,
}: {
  dashboard: ShownDashboard;
  onChoose: (insight: BoardInsight) => void;
}) {
  const [search, setSearch] = useState("");
  const list = useResource<{ results: BoardInsight[] }>(
    `insights to add ${project.value?.id} ${search}`,
    (signal) => request(inProject(`insights/${queryString({ search, limit: listedMax })}`), { signal }),
  );
  const isNew = ({ dashboards }: BoardInsight) => !dashboards.includes(dashboard.id);
  return (
    <>
      <SearchField label={w.findInsight} value={search} onInput={setSearch} />
      <Content resource={list} rows={3}>
        {({ results }) =>
          results.some(isNew) ? (
            <ul class="pick-list">
              {results.filter(isNew).map((insight) => (
                <li key={insight.id}>
                  <Button kind="quiet" icon="plus" onClick={() => onChoose(insight)}>
                    {insight.name || `#${insight.id}`}
                  </Button>
                </li>
              ))}
            </ul>
          ) : (
            <p class="muted">{w.noInsight}</p>
          )
        }
      </Content>
    </>
  );
}
