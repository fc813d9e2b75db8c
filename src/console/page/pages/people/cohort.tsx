/** One cohort: its conditions, its members; also a new one. */

import { useEffect, useState } from "preact/hooks";
import { useRoute } from "preact-iso";
import { to, useAddress } from "../../lib/address.ts";
import { type Ask, ask, formOf, queryText, wordsOf } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import type { Condition } from "../../model/flags.ts";
import { Badge, Button } from "../../parts/basics.tsx";
import { Conditions } from "../../parts/conditions.tsx";
import { Question } from "../../parts/confirm.tsx";
import { Area, Field, FileField, Segments } from "../../parts/fields.tsx";
import { Form } from "../../parts/form.tsx";
import { Page } from "../../parts/page.tsx";
import { needsApproval, Propose, type Refused } from "../../parts/propose.tsx";
import { Content, Empty } from "../../parts/states.tsx";
import { complain, tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";
import { type Cohort, type ConditionGroup, countingMs, useFlagsByCohort } from "./cohorts.tsx";
import { type Person, PersonTable } from "./persons.tsx";

const w = words.cohorts;
const pageSize = 100;

export function CohortPage() {
  const { id = "" } = useRoute().params as { id?: string };
  const isNew = id === "new";
  const { go } = useAddress();
  const [isDeleting, setDeleting] = useState(false);
  const path = inProject(`cohorts/${encodeURIComponent(id)}/`);
  const [isCounting, setCounting] = useState(false);
  const cohort = useResource<Cohort>(
    isNew ? null : `cohort ${project.value?.id} ${id}`,
    (signal) => ask(path, { signal }),
    isCounting ? countingMs : undefined,
  );
  const found = cohort.data;
  useEffect(() => setCounting(found?.is_calculating === true), [found]);
  return (
    <Page
      title={isNew ? w.newCohort : (found?.name ?? words.frame.pages.cohorts)}
      action={
        found && (
          <Button kind="danger" onClick={() => setDeleting(true)}>
            {w.delete}
          </Button>
        )
      }
    >
      {isNew ? (
        <Editor key="new" onSaved={(made) => go(`cohorts/${made.id}`)} />
      ) : (
        <Content of={cohort}>
          {(data) => (
            <>
              <p>
                <Badge>{data.is_static ? w.static : w.dynamic}</Badge>{" "}
                <span class="muted">
                  {data.is_calculating ? w.counting : data.count === null ? "" : w.membersCount(data.count)}
                </span>
              </p>
              <UsedBy id={data.id} />
              <Editor key={data.id} cohort={data} onSaved={cohort.replace} />
              <Members id={data.id} version={data.last_calculation ?? ""} />
            </>
          )}
        </Content>
      )}
      {isDeleting && found && (
        <Question
          title={w.deleteTitle(found.name)}
          text={w.deleteText}
          action={w.delete}
          onClose={() => setDeleting(false)}
          onYes={() => {
            ask(path, { method: "PATCH", body: { deleted: true } }).then(
              () => {
                tell(w.deleted(found.name));
                go("cohorts");
              },
              (error) => complain(wordsOf(error)),
            );
          }}
        />
      )}
    </Page>
  );
}

/** Groups of plain conditions, as the editor can show them; undefined for other forms. */
function plainGroups(cohort: Cohort | undefined): Condition[][] | undefined {
  if (cohort === undefined) return [[]];
  const top = cohort.filters.properties;
  const groups = top?.values ?? [];
  if (top?.type === "AND" && groups.length > 1) return undefined;
  const plain: Condition[][] = [];
  for (const group of groups) {
    const values = (group as ConditionGroup).values;
    if (!Array.isArray(values) || (group.type === "OR" && values.length > 1)) return undefined;
    const isPlain = values.every(
      (one) =>
        !("values" in one) && ["person", "cohort"].includes(String((one as Condition).type ?? "person")),
    );
    if (!isPlain) return undefined;
    plain.push(values as Condition[]);
  }
  return plain.length === 0 ? [[]] : plain;
}

function Editor({ cohort, onSaved }: { cohort?: Cohort; onSaved: (cohort: Cohort) => void }) {
  const [name, setName] = useState(cohort?.name ?? "");
  const [description, setDescription] = useState(cohort?.description ?? "");
  const [groups, setGroups] = useState(() => plainGroups(cohort));
  const [isStatic, setStatic] = useState(cohort?.is_static === true);
  const [csv, setCsv] = useState("");
  const [file, setFile] = useState<File>();
  const [refused, setRefused] = useState<Refused>();
  const save = async () => {
    const values = groups
      ?.filter((conditions) => conditions.length > 0)
      .map((conditions) => ({ type: "AND", values: conditions }));
    const filters =
      isStatic || values === undefined ? {} : { filters: { properties: { type: "OR", values } } };
    const typed = isStatic && csv.trim() !== "" ? { csv } : {};
    const fields = { name: name.trim(), description };
    const list = isStatic ? { is_static: true } : {};
    const write = (id: number | undefined, sent: Pick<Ask, "body" | "form">) =>
      id === undefined
        ? ask<Cohort>(inProject("cohorts/"), { method: "POST", ...sent })
        : ask<Cohort>(inProject(`cohorts/${id}/`), { method: "PATCH", ...sent });
    if (!isStatic || file === undefined) {
      const body = { ...fields, ...filters, ...list, ...typed };
      try {
        onSaved(await write(cohort?.id, { body }));
      } catch (error) {
        if (cohort && needsApproval(error)) setRefused({ cohort, changes: body });
        throw error;
      }
      return;
    }
    // A file by itself: it may be a table, whose heading tells where the ids stand.
    const saved = await write(cohort?.id, { form: formOf({ ...fields, is_static: "true", csv: file }) });
    onSaved("csv" in typed ? await write(saved.id, { body: typed }) : saved);
  };
  return (
    <section class="card">
      <Form onSend={save} action={w.save} done={w.saved(name)}>
        {(errorOf) => (
          <>
            <div class="columns">
              <Field label={w.name} value={name} onInput={setName} error={errorOf("name")} isRequired />
              <Field
                label={w.description}
                value={description}
                onInput={setDescription}
                error={errorOf("description")}
              />
            </div>
            {cohort === undefined && (
              <Segments
                label={w.columns.kind}
                value={isStatic ? "static" : "dynamic"}
                choices={[
                  ["dynamic", w.dynamic],
                  ["static", w.static],
                ]}
                onChange={(kind) => setStatic(kind === "static")}
              />
            )}
            {isStatic ? (
              <div class="stack tight">
                <FileField
                  label={w.file}
                  accept=".csv,.txt,text/csv,text/plain"
                  help={w.fileHelp}
                  onChoose={setFile}
                />
                <Area label={w.ids} value={csv} onInput={setCsv} rows={4} error={errorOf("csv")} />
                <p class="help">{w.staticHelp}</p>
              </div>
            ) : groups === undefined ? (
              <p class="help">{w.complex}</p>
            ) : (
              <div class="stack">
                <h2>{w.conditions}</h2>
                <p class="help">{w.conditionsHelp}</p>
                {groups.map((conditions, place) => (
                  <section key={place} class="stack tight" aria-label={w.group(place)}>
                    <h3>{place === 0 ? w.group(place) : `${w.or} · ${w.group(place)}`}</h3>
                    <Conditions
                      conditions={conditions}
                      kinds={["person", "cohort"]}
                      isShowingProblems
                      onChange={(changed) =>
                        setGroups(groups.map((other, index) => (index === place ? changed : other)))
                      }
                    />
                  </section>
                ))}
                <div>
                  <Button kind="quiet" icon="plus" onClick={() => setGroups([...groups, []])}>
                    {w.addGroup}
                  </Button>
                </div>
              </div>
            )}
          </>
        )}
      </Form>
      {refused && <Propose {...refused} onClose={() => setRefused(undefined)} />}
    </section>
  );
}

/** Flags that look at the cohort. */
function UsedBy({ id }: { id: number }) {
  const { count, flags } = useFlagsByCohort()?.[id] ?? { count: 0, flags: [] };
  if (count === 0) return null;
  return (
    <p>
      {w.usedBy}{" "}
      {flags.map((flag) => (
        <a key={flag.id} href={to(`flags/${flag.id}`)}>
          {flag.key}{" "}
        </a>
      ))}
      {count > flags.length && w.moreFlags(count - flags.length)}
    </p>
  );
}

function Members({ id, version }: { id: number; version: string }) {
  const [limit, setLimit] = useState(pageSize);
  const members = useResource<{ results: Person[]; next: string | null }>(
    `members of ${id} ${version} ${limit}`,
    (signal) => ask(inProject(`cohorts/${id}/persons/${queryText({ limit })}`), { signal }),
  );
  return (
    <section class="stack">
      <h2>{w.members}</h2>
      <Content of={members}>
        {({ results, next }) =>
          results.length === 0 ? (
            <Empty title={w.noMembers} icon="persons" />
          ) : (
            <>
              <PersonTable label={w.members} persons={results} />
              {next && (
                <div>
                  <Button onClick={() => setLimit(limit + pageSize)}>{words.people.more}</Button>
                </div>
              )}
            </>
          )
        }
      </Content>
    </section>
  );
}
