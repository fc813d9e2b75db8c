/** What the draft gives real or pretended people, beside what the saved flag gives them, and why. */

import { useEffect, useState } from "preact/hooks";
import { useAddress } from "../../lib/address.ts";
import { asFailure, ask, type Failure, isAbort } from "../../lib/api.ts";
import { parseJson } from "../../lib/json.ts";
import { inProject } from "../../lib/session.ts";
import { changedFields, type Draft } from "../../model/draft.ts";
import { type Explanation, shownValue } from "../../model/explanation.ts";
import type { Flag } from "../../model/flags.ts";
import { Badge, Button } from "../../parts/basics.tsx";
import { Area } from "../../parts/fields.tsx";
import { AwayBar, Empty, Trouble } from "../../parts/states.tsx";
import { Trace } from "../../parts/trace.tsx";
import { words } from "../../words/index.ts";

const w = words.flag.tryIt;
const idsMax = 20;
const quietMs = 200;

interface Tried {
  draft: Explanation;
  saved: Explanation;
}

export function TryIt({ flag, draft, isChanged }: { flag: Flag; draft: Draft; isChanged: boolean }) {
  const { query, set } = useAddress();
  const [ids, setIds] = useState(query.ids ?? "");
  const [properties, setProperties] = useState(query.properties ?? "");
  const [groups, setGroups] = useState(query.groups ?? "");
  const [answer, setAnswer] = useState<Tried[]>();
  const [failure, setFailure] = useState<Failure>();
  const [opened, setOpened] = useState<string>();
  const wanted = [...new Set(ids.split(/[\n,]/).flatMap((id) => id.trim() || []))].slice(0, idsMax);
  const pretended = parseObject(properties);
  const inGroups = parseObject(groups);
  const key = JSON.stringify([wanted, pretended, inGroups, draft, flag.version]);

  useEffect(() => {
    if (wanted.length === 0 || pretended === undefined || inGroups === undefined) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      set({ ids, properties, groups });
      ask<{ results: Tried[] }>(inProject("feature_flags/explain/"), {
        method: "POST",
        signal: controller.signal,
        body: {
          id: flag.id,
          ...changedFields(flag, draft),
          subjects: wanted.map((id) => ({ distinct_id: id, person_properties: pretended, groups: inGroups })),
        },
      }).then(
        ({ results }) => {
          setAnswer(results);
          setFailure(undefined);
        },
        (error) => {
          if (isAbort(error)) return;
          setFailure(asFailure(error));
        },
      );
    }, quietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);

  return (
    <div class="stack">
      <section class="card stack">
        <p class="help">{w.help}</p>
        <div class="columns">
          <Area label={w.ids} value={ids} onInput={setIds} rows={2} />
          <Area
            label={w.properties}
            value={properties}
            onInput={setProperties}
            rows={2}
            error={pretended === undefined ? w.jsonWrong : undefined}
          />
          <Area
            label={w.groups}
            value={groups}
            onInput={setGroups}
            rows={2}
            error={inGroups === undefined ? w.jsonWrong : undefined}
          />
        </div>
        <p class="help">{w.idsHelp}</p>
      </section>
      {!flag.active && <p class="muted">{w.inactive}</p>}
      {failure &&
        (failure.isPassing ? <AwayBar failure={failure} readAt={0} /> : <Trouble failure={failure} />)}
      {wanted.length === 0 ? (
        <Empty title={w.empty} icon="user" />
      ) : (
        answer &&
        !failure && (
          <ul class="stack tight">
            {answer.map(({ draft: explanation, saved }) => {
              const isOpen = opened === explanation.distinct_id || answer.length === 1;
              const differs = shownValue(saved) !== shownValue(explanation);
              return (
                <li key={explanation.distinct_id} class="card tried">
                  <div class="row apart">
                    <span>
                      <b>{explanation.distinct_id}</b>{" "}
                      <span class="muted">{explanation.person ? w.known : w.unknown}</span>
                    </span>
                    <span class="row">
                      {isChanged && (
                        <span>
                          {w.saved} <Badge>{shownValue(saved)}</Badge>
                        </span>
                      )}
                      <span>
                        {isChanged ? w.draft : w.saved}{" "}
                        <Badge tone={differs ? "warn" : explanation.value ? "good" : "plain"}>
                          {shownValue(explanation)}
                        </Badge>
                      </span>
                      <Button
                        kind="quiet"
                        icon={isOpen ? "up" : "down"}
                        label={`${w.why}: ${explanation.distinct_id}`}
                        onClick={() => setOpened(isOpen ? "" : explanation.distinct_id)}
                      />
                    </span>
                  </div>
                  {isOpen && <Trace explanation={explanation} />}
                </li>
              );
            })}
          </ul>
        )
      )}
    </div>
  );
}

/** An object; undefined for text that is none. */
function parseObject(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const parsed = parseJson(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
