/** Holdouts: people who see no variant of the experiments that use one. */

import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Field, ShareField } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Badge, Button } from "../../components/primitives.tsx";
import { Empty, ResourceList } from "../../components/states.tsx";
import { toastError } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { percent } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import type { Holdout } from "../../model/experiments.ts";

const w = lazyMessages.experiments;
const listMax = 500;
const firstShare = 5;
const path = (rest = "") => inProject(`experiment_holdouts/${rest}`);

type Opened = { kind: "edit"; holdout?: Holdout } | { kind: "remove"; holdout: Holdout };

export function Holdouts() {
  const [opened, setOpened] = useState<Opened>();
  const all = useResource<{ results: Holdout[] }>(`holdouts ${project.value?.id}`, (signal) =>
    request(path(`?limit=${listMax}`), { signal }),
  );
  const close = () => setOpened(undefined);
  return (
    <section class="card stack">
      <div class="row apart">
        <p class="help">{w.holdoutsHelp}</p>
        <Button icon="plus" onClick={() => setOpened({ kind: "edit" })}>
          {w.newHoldout}
        </Button>
      </div>
      <ResourceList resource={all} rows={2} empty={<Empty title={w.noHoldouts} icon="persons" />}>
        {(holdout) => (
          <li key={holdout.id} class="row apart">
            <span class="stack tight">
              <span class="row">
                <b>{holdout.name}</b>{" "}
                <Badge>{percent((holdout.filters[0]?.rollout_percentage ?? 0) / 100)}</Badge>
              </span>
              {holdout.description && <span class="muted">{holdout.description}</span>}
            </span>
            <span class="row">
              <Button label={w.editNamed(holdout.name)} onClick={() => setOpened({ kind: "edit", holdout })}>
                {w.edit}
              </Button>
              <Button
                kind="quiet"
                icon="trash"
                label={w.deleteNamed(holdout.name)}
                onClick={() => setOpened({ kind: "remove", holdout })}
              />
            </span>
          </li>
        )}
      </ResourceList>
      {opened?.kind === "edit" && (
        <HoldoutForm
          holdout={opened.holdout}
          onClose={close}
          onSaved={() => {
            close();
            all.reload();
          }}
        />
      )}
      {opened?.kind === "remove" && (
        <ConfirmDialog
          title={w.deleteHoldout}
          text={w.deleteHoldoutText(opened.holdout.name)}
          action={w.deleteHoldout}
          onClose={close}
          onYes={() =>
            void request(path(`${opened.holdout.id}/`), { method: "DELETE" }).then(all.reload, toastError)
          }
        />
      )}
    </section>
  );
}

function HoldoutForm({
  holdout,
  onClose,
  onSaved,
}: {
  holdout: Holdout | undefined;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [name, setName] = useState(holdout?.name ?? "");
  const [description, setDescription] = useState(holdout?.description ?? "");
  const [share, setShare] = useState(holdout?.filters[0]?.rollout_percentage ?? firstShare);
  const form = useForm({}, async () => {
    if (Number.isNaN(share)) return;
    await request(path(holdout === undefined ? "" : `${holdout.id}/`), {
      method: holdout === undefined ? "POST" : "PATCH",
      body: { name: name.trim(), description, filters: [{ properties: [], rollout_percentage: share }] },
    });
    onSaved();
  });
  return (
    <FormDialog
      title={holdout === undefined ? w.newHoldout : w.editNamed(holdout.name)}
      form={form}
      action={holdout === undefined ? w.createHoldout : messages.frame.save}
      onCancel={onClose}
      onClose={onClose}
    >
      <Field label={w.name} value={name} onInput={setName} isRequired autofocus />
      <Field label={w.description} value={description} onInput={setDescription} />
      <ShareField label={w.holdoutShare} value={share} onInput={setShare} isRequired />
      {holdout !== undefined && <p class="help">{w.holdoutEditHelp}</p>}
    </FormDialog>
  );
}
