/** Adds a tile to a dashboard: an insight that exists, a new SQL statement, a text, or the list of flag changes. */

import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { Area, Field, SearchField, Segments } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content } from "../../components/states.tsx";
import { toast } from "../../components/toast.tsx";
import { errorMessage, queryString, request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { laterWords } from "../../messages/later.ts";
import {
  type BoardInsight,
  changeTile,
  type DashboardWithTiles,
  flagChangesText,
} from "../../model/dashboard.ts";

const w = laterWords.dashboards;
const listedMax = 30;
type TileKind = keyof typeof w.tileKinds;

export function AddTile({
  dashboard,
  onClose,
  onAdded,
}: {
  dashboard: DashboardWithTiles;
  onClose: () => void;
  onAdded: () => void;
}) {
  const [kind, setKind] = useState<TileKind>("insight");
  const [name, setName] = useState("");
  const [statement, setStatement] = useState("");
  const [text, setText] = useState("");
  const [error, setError] = useState<string>();
  const send = async (sending: Promise<unknown>, added: string) => {
    try {
      await sending;
      toast(w.added(added));
      onAdded();
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  const addText = (body: string, added: string) =>
    send(changeTile(dashboard, undefined, { text: { body } }), added);
  const add = () => {
    if (kind === "sql") {
      const query = { kind: "DataVisualizationNode", source: { kind: "HogQLQuery", query: statement } };
      const body = { name, query, dashboards: [dashboard.id], saved: true };
      return send(request(inProject("insights/"), { method: "POST", body }), name);
    }
    return kind === "text"
      ? addText(text, w.tileKinds.text)
      : kind === "changes"
        ? addText(flagChangesText, w.changes)
        : undefined;
  };
  return (
    <Dialog
      title={w.addTile}
      onClose={onClose}
      onSubmit={add}
      actions={
        kind === "insight" ? (
          <Button href={to("explore")}>{w.goExplore}</Button>
        ) : (
          <Button kind="main" type="submit" isDisabled={kind === "text" && text.trim() === ""}>
            {w.addTile}
          </Button>
        )
      }
    >
      <Segments
        label={w.addTile}
        value={kind}
        choices={Object.entries(w.tileKinds) as [TileKind, string][]}
        onChange={setKind}
      />
      {kind === "insight" && (
        <InsightChoice
          dashboard={dashboard}
          onChoose={({ id, name: chosen, dashboards }) =>
            void send(
              request(inProject(`insights/${id}/`), {
                method: "PATCH",
                body: { dashboards: [...dashboards, dashboard.id] },
              }),
              chosen,
            )
          }
        />
      )}
      {kind === "sql" && (
        <>
          <Field label={w.name} value={name} onInput={setName} isRequired />
          <Area label={w.statement} value={statement} onInput={setStatement} rows={5} />
        </>
      )}
      {kind === "text" && <Area label={w.text} value={text} onInput={setText} rows={5} />}
      {kind === "changes" && <p class="help">{w.changesHelp}</p>}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </Dialog>
  );
}

/** Insights of the project that the dashboard does not show yet. */
function InsightChoice({
  dashboard,
  onChoose,
}: {
  dashboard: DashboardWithTiles;
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
      <Content of={list} rows={3}>
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
