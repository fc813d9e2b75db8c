/** Compares the values of draft and saved flag for real or hypothetical persons, with reasons. */

import { useEffect, useState } from "preact/hooks";
import { Area } from "../../components/fields.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { Empty, ErrorState, OfflineBar } from "../../components/states.tsx";
import { Trace } from "../../components/trace.tsx";
import { type ApiError, isAbort, queryString, request, toApiError } from "../../lib/api.ts";
import { parseJson } from "../../lib/json.ts";
import { useBackgroundResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import { changedFields, type Draft } from "../../model/draft.ts";
import { type Explanation, shownValue } from "../../model/explanation.ts";
import type { Flag } from "../../model/flags.ts";
import type { Person } from "../../model/people.ts";

const w = words.flag.tryIt;
const idsMax = 20;
const quietMs = 200;
const searchLengthMin = 3;
const matchesMax = 5;

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
  const [failure, setFailure] = useState<ApiError>();
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
      request<{ results: Tried[] }>(inProject("feature_flags/explain/"), {
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
          setFailure(toApiError(error));
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
        <Matches
          text={ids.split(/[\n,]/).at(-1)!.trim()}
          onChoose={(id) =>
            setIds([...ids.split(/[\n,]/).slice(0, -1), id].map((one) => one.trim()).join(", "))
          }
        />
        <p class="help">{w.idsHelp}</p>
      </section>
      {!flag.active && <p class="muted">{w.inactive}</p>}
      {failure &&
        (failure.isPassing ? <OfflineBar failure={failure} readAt={0} /> : <ErrorState failure={failure} />)}
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

/** Persons whose name, e-mail or ID contains the search text. */
function Matches({ text, onChoose }: { text: string; onChoose: (distinctId: string) => void }) {
  const found = useBackgroundResource<{ results: Person[] }>(
    text.length < searchLengthMin ? null : `test people ${project.value?.id} ${text}`,
    (signal) => request(inProject(`persons/${queryString({ search: text, limit: matchesMax })}`), { signal }),
  );
  const matches = (found.data?.results ?? []).filter(
    ({ distinct_ids: all }) => all.length > 0 && !all.includes(text),
  );
  if (text.length < searchLengthMin || matches.length === 0) return null;
  return (
    <ul class="row" aria-label={w.matches}>
      {matches.map(({ uuid, name, distinct_ids: all, properties }) => (
        <li key={uuid}>
          <Button icon="user" onClick={() => onChoose(all[0]!)}>
            {[...new Set([name, properties.email, all[0]].flatMap((one) => (one ? String(one) : [])))]
              .slice(0, 2)
              .join(" · ")}
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** Undefined for text that is not a JSON object. */
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
