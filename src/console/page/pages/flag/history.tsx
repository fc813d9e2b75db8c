/** History of a flag, with reverting. */

import { useState } from "preact/hooks";
import { ChangeList } from "../../components/change-list.tsx";
import { needsApproval } from "../../components/change-request-dialog.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Button } from "../../components/primitives.tsx";
import { Content, Empty } from "../../components/states.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { queryString, request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import type { ActivityEntry } from "../../model/activity.ts";
import type { Flag } from "../../model/flags.ts";

const w = messages.flag.history;
const pageSize = 50;

export function History({
  flag,
  disabledReason,
  mustPropose,
  onReverted,
  onPropose,
}: {
  flag: Flag;
  disabledReason: string | false;
  /** Changes of the flag need approval. */
  mustPropose: boolean;
  onReverted: (flag: Flag) => void;
  onPropose: (undo: string) => void;
}) {
  const [limit, setLimit] = useState(pageSize);
  const [requested, setRequested] = useState<ActivityEntry>();
  const history = useResource<{ results: ActivityEntry[]; total_count: number }>(
    `history ${flag.id} ${flag.version} ${limit}`,
    (signal) => request(inProject(`feature_flags/${flag.id}/activity/${queryString({ limit })}`), { signal }),
  );
  const revert = async (entry: ActivityEntry) => {
    try {
      const body = { activity_id: entry.id };
      onReverted(
        await request<Flag>(inProject(`feature_flags/${flag.id}/revert/`), { method: "POST", body }),
      );
      toast(w.reverted);
    } catch (error) {
      // The flag may need approval only because protected flags depend on it.
      if (needsApproval(error)) onPropose(entry.id);
      else toastError(error);
    }
  };
  return (
    <section class="card">
      <Content resource={history}>
        {({ results, total_count: total }) =>
          results.length === 0 ? (
            <Empty title={w.empty} icon="history" />
          ) : (
            <>
              <ChangeList
                entries={results}
                isOfOneItem
                actionsOf={(entry) =>
                  entry.activity === "created" ? null : (
                    <Button
                      kind="quiet"
                      icon="history"
                      disabledReason={disabledReason}
                      onClick={() => (mustPropose ? onPropose(entry.id) : setRequested(entry))}
                    >
                      {w.revert}
                    </Button>
                  )
                }
              />
              {results.length < total && (
                <Button onClick={() => setLimit(limit + pageSize)}>{messages.activity.more}</Button>
              )}
            </>
          )
        }
      </Content>
      {requested && (
        <ConfirmDialog
          title={w.revert}
          text={w.revertText}
          action={w.revert}
          onYes={() => void revert(requested)}
          onClose={() => setRequested(undefined)}
        />
      )}
    </section>
  );
}
