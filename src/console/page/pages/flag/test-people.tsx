/** Compares the values of draft and saved flag for people, with the reason in one sentence. */

import { useEffect, useState } from "preact/hooks";
import { ChoiceField } from "../../components/choice-popover.tsx";
import { Area } from "../../components/fields.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { ErrorState, OfflineBar } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { ReasonSentence, Trace } from "../../components/trace.tsx";
import { type ApiError, isAbort, queryString, request, toApiError } from "../../lib/api.ts";
import { parseJson } from "../../lib/json.ts";
import { useBackgroundResource } from "../../lib/resource.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { cohortNames } from "../../model/definitions.ts";
import { changedFields, type Draft } from "../../model/draft.ts";
import { type Explanation, shownValue } from "../../model/explanation.ts";
import type { Flag } from "../../model/flags.ts";
import type { Person } from "../../model/people.ts";

const w = messages.flag.tryIt;
const idsMax = 20;
const fromCohortMax = 10;
const quietMs = 200;
const searchLengthMin = 3;
const matchesMax = 5;

interface Tested {
  draft: Explanation;
  saved: Explanation;
}

const getIds = (text: string) => [...new Set(text.split(/[\n,]/).flatMap((id) => id.trim() || []))];

export function TestPersons({ flag, draft, isChanged }: { flag: Flag; draft: Draft; isChanged: boolean }) {
  const { query, set } = useAddress();
  const [ids, setIds] = useState(query.ids ?? "");
  const [properties, setProperties] = useState(query.properties ?? "");
  const [groups, setGroups] = useState(query.groups ?? "");
  const [answer, setAnswer] = useState<Tested[]>();
  const [failure, setFailure] = useState<ApiError>();
  const [opened, setOpened] = useState<string>();
  const wanted = getIds(ids).slice(0, idsMax);
  const pretended = parseObject(properties);
  const inGroups = parseObject(groups);
  const key = JSON.stringify([wanted, pretended, inGroups, draft, flag.version]);

  useEffect(() => {
    if (wanted.length === 0 || pretended === undefined || inGroups === undefined) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      set({ ids, properties, groups });
      request<{ results: Tested[] }>(inProject("feature_flags/explain/"), {
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

  const addCohort = (id: string) => {
    if (id === "") return;
    const path = inProject(`cohorts/${id}/persons/${queryString({ limit: fromCohortMax })}`);
    request<{ results: Person[] }>(path).then(
      ({ results }) =>
        setIds(
          getIds([ids, ...results.map(({ distinct_ids: all }) => all[0] ?? "")].join(","))
            .slice(0, idsMax)
            .join(", "),
        ),
      toastError,
    );
  };

  const cohorts = [...(cohortNames.value ?? [])];
  return (
    <div class="stack tight">
      <h3>{w.title}</h3>
      <Area label={w.ids} value={ids} onInput={setIds} rows={1} />
      <Matches
        text={ids.split(/[\n,]/).at(-1)!.trim()}
        onChoose={(id) =>
          setIds([...ids.split(/[\n,]/).slice(0, -1), id].map((value) => value.trim()).join(", "))
        }
      />
      <p class="help">{w.idsHelp}</p>
      {cohorts.length > 0 && (
        <ChoiceField
          label={messages.flag.condition.cohort}
          value=""
          choices={cohorts}
          placeholder={w.ofCohort}
          onChange={addCohort}
        />
      )}
      <details>
        <summary>{w.overrides}</summary>
        <div class="stack tight">
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
      </details>
      {!flag.active && <p class="muted">{w.inactive}</p>}
      {failure &&
        (failure.isPassing ? <OfflineBar failure={failure} readAt={0} /> : <ErrorState failure={failure} />)}
      {wanted.length > 0 && answer && !failure && (
        <ul class="lines">
          {answer.map((tested) => (
            <TestedPerson
              key={tested.draft.distinct_id}
              tested={tested}
              isChanged={isChanged}
              isOpen={opened === tested.draft.distinct_id}
              onOpen={setOpened}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

function TestedPerson({
  tested: { draft: explanation, saved },
  isChanged,
  isOpen,
  onOpen,
}: {
  tested: Tested;
  isChanged: boolean;
  isOpen: boolean;
  onOpen: (id: string | undefined) => void;
}) {
  const id = explanation.distinct_id;
  const differs = shownValue(saved) !== shownValue(explanation);
  return (
    <li class="stack tight">
      <div class="row apart">
        <span>
          <b class="break">{id}</b> <span class="muted">{explanation.person ? w.known : w.unknown}</span>
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
            label={`${w.why}: ${id}`}
            onClick={() => onOpen(isOpen ? undefined : id)}
          />
        </span>
      </div>
      <p class="muted">
        <ReasonSentence explanation={explanation} />
      </p>
      {isOpen && <Trace explanation={explanation} />}
    </li>
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
            {[...new Set([name, properties.email, all[0]].flatMap((item) => (item ? String(item) : [])))]
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
