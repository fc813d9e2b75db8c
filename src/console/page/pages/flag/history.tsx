/** What happened to a flag, and the way back. */

import { useState } from "preact/hooks";
import { ask, queryText, wordsOf } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import type { ActivityEntry } from "../../model/activity.ts";
import type { Flag } from "../../model/flags.ts";
import { Button } from "../../parts/basics.tsx";
import { ChangeList } from "../../parts/change-list.tsx";
import { Question } from "../../parts/confirm.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { complain, tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.flag.history;
const pageSize = 50;

export function History({
  flag,
  refusal,
  onReverted,
}: {
  flag: Flag;
  refusal: string | false;
  onReverted: (flag: Flag) => void;
}) {
  const [limit, setLimit] = useState(pageSize);
  const [asked, setAsked] = useState<ActivityEntry>();
  const history = useResource<{ results: ActivityEntry[]; total_count: number }>(
    `history ${flag.id} ${flag.version} ${limit}`,
    (signal) => ask(inProject(`feature_flags/${flag.id}/activity/${queryText({ limit })}`), { signal }),
  );
  const revert = async (entry: ActivityEntry) => {
    try {
      const body = { activity_id: entry.id };
      onReverted(await ask<Flag>(inProject(`feature_flags/${flag.id}/revert/`), { method: "POST", body }));
      tell(w.reverted);
    } catch (error) {
      complain(wordsOf(error));
    }
  };
  return (
    <section class="card">
      <Content of={history}>
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
                    <Button kind="quiet" icon="history" refusal={refusal} onClick={() => setAsked(entry)}>
                      {w.revert}
                    </Button>
                  )
                }
              />
              {results.length < total && (
                <Button onClick={() => setLimit(limit + pageSize)}>{words.activity.more}</Button>
              )}
            </>
          )
        }
      </Content>
      {asked && (
        <Question
          title={w.revert}
          text={w.revertText}
          action={w.revert}
          onYes={() => void revert(asked)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </section>
  );
}
