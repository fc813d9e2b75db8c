/** Saves an insight or SQL statement to a dashboard, existing or new. */

import { queryString, request } from "../lib/api.ts";
import { useForm } from "../lib/form.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { lazyMessages } from "../messages/later.ts";
import type { Query } from "../model/insight.ts";
import { Field, Select } from "./fields.tsx";
import { FormDialog } from "./form.tsx";
import { toast } from "./toast.tsx";

const w = lazyMessages.explore;

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
  const form = useForm(
    { name: "", board: isFound ? noBoard : "", boardName: "" },
    async ({ name, board, boardName }) => {
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
    },
  );
  return (
    <FormDialog title={title} form={form} action={messages.frame.save} onClose={onClose}>
      <Field label={w.name} {...form.input("name")} isRequired autofocus />
      <Select
        label={w.dashboard}
        choices={[
          ...(isFound ? [[noBoard, w.noDashboard] as const] : []),
          ["", w.newDashboard],
          ...(boards.data?.results ?? []).map(
            ({ id, name: text }) => [String(id), text || `#${id}`] as const,
          ),
        ]}
        {...form.choice("board")}
      />
      {form.values.board === "" && <Field label={w.dashboardName} {...form.input("boardName")} isRequired />}
    </FormDialog>
  );
}
