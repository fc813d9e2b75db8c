/** Saves an insight or SQL statement to a dashboard, existing or new. */

import { useState } from "preact/hooks";
import { errorMessage, queryString, request } from "../lib/api.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { words } from "../messages/index.ts";
import { laterWords } from "../messages/later.ts";
import type { Query } from "../model/insight.ts";
import { Dialog } from "./dialog.tsx";
import { Field, Select } from "./fields.tsx";
import { Button } from "./primitives.tsx";
import { toast } from "./toast.tsx";

const w = laterWords.explore;

const noBoard = "none";

export function SaveInsight({
  query,
  title,
  isFound,
  onClose,
}: {
  /** In stored form. */
  query: Query;
  title: string;
  /** Whether it can be found without a dashboard. */
  isFound?: boolean;
  onClose: () => void;
}) {
  const boards = useResource<{ results: { id: number; name: string }[] }>(
    `dashboards to choose ${project.value?.id}`,
    (signal) =>
      request(inProject(`dashboards/${queryString({ exclude_generated: true, limit: 200 })}`), { signal }),
  );
  const [name, setName] = useState("");
  const [board, setBoard] = useState(isFound ? noBoard : "");
  const [boardName, setBoardName] = useState("");
  const [error, setError] = useState<string>();
  const save = async () => {
    try {
      const target =
        board === ""
          ? (
              await request<{ id: number }>(inProject("dashboards/"), {
                method: "POST",
                body: { name: boardName },
              })
            ).id
          : Number(board);
      const dashboards = board === noBoard ? [] : [target];
      const body = { name, query, dashboards, saved: true };
      await request(inProject("insights/"), { method: "POST", body });
      toast(w.saved(name));
      onClose();
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={save}
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
          ...(isFound ? [[noBoard, w.noDashboard] as const] : []),
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
