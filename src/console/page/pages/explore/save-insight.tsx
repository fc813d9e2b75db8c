/** Keeps a question on a dashboard, on a new one too. */

import { useState } from "preact/hooks";
import { ask, queryText, wordsOf } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import type { Query } from "../../model/insight.ts";
import { Button } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, Select } from "../../parts/fields.tsx";
import { tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.explore;

export function SaveInsight({ query, onClose }: { query: Query; onClose: () => void }) {
  const boards = useResource<{ results: { id: number; name: string }[] }>(
    `dashboards to choose ${project.value?.id}`,
    (signal) => ask(inProject(`dashboards/${queryText({ limit: 200 })}`), { signal }),
  );
  const [name, setName] = useState("");
  const [board, setBoard] = useState("");
  const [boardName, setBoardName] = useState("");
  const [error, setError] = useState<string>();
  const save = async () => {
    try {
      const target =
        board === ""
          ? (
              await ask<{ id: number }>(inProject("dashboards/"), {
                method: "POST",
                body: { name: boardName },
              })
            ).id
          : Number(board);
      const body = {
        name,
        query: { kind: "InsightVizNode", source: query },
        dashboards: [target],
        saved: true,
      };
      await ask(inProject("insights/"), { method: "POST", body });
      tell(w.saved(name));
      onClose();
    } catch (failure) {
      setError(wordsOf(failure));
    }
  };
  return (
    <Dialog
      title={w.saveTitle}
      onClose={onClose}
      onSubmit={() => void save()}
      actions={
        <Button kind="main" type="submit">
          {words.frame.save}
        </Button>
      }
    >
      <Field label={w.name} value={name} onInput={setName} isRequired autofocus />
      <Select
        label={w.dashboard}
        value={board}
        choices={[
          ["", w.newDashboard],
          ...(boards.data?.results ?? []).map(
            ({ id, name: text }) => [String(id), text || `#${id}`] as const,
          ),
        ]}
        onChange={setBoard}
      />
      {board === "" && <Field label={w.dashboardName} value={boardName} onInput={setBoardName} isRequired />}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </Dialog>
  );
}
