/** The form of a cohort, existing or new. Changes that affect critical flags are confirmed, or proposed. */

import { useState } from "preact/hooks";
import { type ApprovalRequired, needsApproval } from "../../components/change-request-dialog.tsx";
import { Conditions } from "../../components/conditions.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Area, Field, FileField, Segments } from "../../components/fields.tsx";
import { Form } from "../../components/form.tsx";
import { AddButton } from "../../components/primitives.tsx";
import { toast, toastError } from "../../components/toast.tsx";
import { getForm, type RequestOptions, request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { inProject } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { useApprovals } from "../../model/approvals.ts";
import { type Cohort, plainGroups } from "../../model/cohorts.ts";
import { isSame } from "../../model/filter-differences.ts";
import type { Condition } from "../../model/flags.ts";

const w = lazyMessages.cohorts;

export function CohortEditor({
  cohort,
  criticalFlags = [],
  onSaved,
  onRejected,
}: {
  cohort?: Cohort;
  /** Keys of the critical flags that a change of the members affects. */
  criticalFlags?: readonly string[];
  onSaved: (cohort: Cohort) => void;
  /** The change needs approval. */
  onRejected?: (rejected: ApprovalRequired) => void;
}) {
  const unsaved = useUnsavedFields("cohort");
  const [name, setName] = unsaved.field("name", cohort?.name ?? "");
  const [description, setDescription] = unsaved.field("description", cohort?.description ?? "");
  const [groups, setGroups] = unsaved.field("groups", cohort === undefined ? [[]] : storedGroups(cohort));
  const [isStatic, setStatic] = unsaved.field("isStatic", cohort?.is_static === true);
  const [csv, setCsv] = unsaved.field("csv", "");
  const [file, setFile] = useState<File>();
  const [isAsking, setAsking] = useState(false);
  const approvals = useApprovals();

  const values = groups
    ?.filter((conditions) => conditions.length > 0)
    .map((conditions) => ({ type: "AND", values: conditions }));
  const fields = { name: name.trim(), description };
  const typed = isStatic && csv.trim() !== "" ? { csv } : {};
  const body = {
    ...fields,
    ...(isStatic || values === undefined ? {} : { filters: { properties: { type: "OR", values } } }),
    ...(isStatic ? { is_static: true } : {}),
    ...typed,
  };
  const upload = isStatic ? file : undefined;
  const isOtherMembers =
    upload !== undefined || "csv" in typed || !isSame(groups, cohort && storedGroups(cohort));

  const write = (id: number | undefined, sent: Pick<RequestOptions, "body" | "form">) =>
    id === undefined
      ? request<Cohort>(inProject("cohorts/"), { method: "POST", ...sent })
      : request<Cohort>(inProject(`cohorts/${id}/`), { method: "PATCH", ...sent });
  const send = async () => {
    if (upload === undefined) return await write(cohort?.id, { body });
    // Upload the file itself: it may be a table, whose header names the column of ids.
    const saved = await write(cohort?.id, { form: getForm({ ...fields, is_static: "true", csv: upload }) });
    return "csv" in typed ? await write(saved.id, { body: typed }) : saved;
  };
  /** @returns false if the change was not made. */
  const save = async (isConfirmed: boolean) => {
    const isCritical = cohort !== undefined && criticalFlags.length > 0 && isOtherMembers;
    if (isCritical && !isConfirmed && !(await approvals.areUsed())) {
      setAsking(true);
      return false;
    }
    try {
      onSaved(await send());
      return true;
    } catch (error) {
      if (cohort === undefined || !needsApproval(error)) throw error;
      const changes = upload === undefined ? body : { ...fields, csv: await upload.text() };
      onRejected?.({ cohort, changes });
      return false;
    }
  };
  return (
    <section class="card">
      <Form unsaved={unsaved} onSend={() => save(false)} action={w.save} done={w.saved(name)}>
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
                {groups.map((conditions, position) => (
                  <section key={position} class="stack tight" aria-label={w.group(position)}>
                    <h3>{position === 0 ? w.group(position) : `${w.or} · ${w.group(position)}`}</h3>
                    <Conditions
                      conditions={conditions}
                      kinds={["person", "cohort"]}
                      isShowingProblems
                      onChange={(changed) =>
                        setGroups(groups.map((other, index) => (index === position ? changed : other)))
                      }
                    />
                  </section>
                ))}
                <div>
                  <AddButton focused="button" onAdd={() => setGroups([...groups, []])}>
                    {w.addGroup}
                  </AddButton>
                </div>
              </div>
            )}
          </>
        )}
      </Form>
      {isAsking && (
        <ConfirmDialog
          title={w.criticalTitle(name)}
          text={w.criticalText(criticalFlags)}
          action={w.save}
          onYes={() =>
            void save(true).then((isSaved) => {
              if (!isSaved) return;
              unsaved.clear();
              toast(w.saved(name));
            }, toastError)
          }
          onClose={() => setAsking(false)}
        />
      )}
    </section>
  );
}

const storedGroups = (cohort: Cohort): Condition[][] | undefined => plainGroups(cohort.filters);
