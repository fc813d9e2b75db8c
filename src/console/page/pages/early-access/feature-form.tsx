/** Creates or edits an early access feature. */

import { useState } from "preact/hooks";
import { Area, Field, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { toast } from "../../components/toast.tsx";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { changeFeature, createFeature, type Feature, type Stage } from "../../model/early-access.ts";
import { type FlagPage, readFlags } from "../../model/flags.ts";

const w = lazyMessages.earlyAccess;
const flagsMax = 500;

export function FeatureForm({
  feature,
  onClose,
  onSaved,
}: {
  feature?: Feature;
  onClose: () => void;
  onSaved: (after: Feature) => void;
}) {
  const [name, setName] = useState(feature?.name ?? "");
  const [description, setDescription] = useState(feature?.description ?? "");
  const [docs, setDocs] = useState(feature?.documentation_url ?? "");
  const [stage, setStage] = useState<Stage>("draft");
  const [flagId, setFlagId] = useState("");
  const flags = useResource<FlagPage>(
    feature === undefined ? `flags for features ${project.value?.id}` : null,
    (signal) => readFlags({ limit: flagsMax }, signal),
  );
  const form = useForm({}, async () => {
    const body = { name: name.trim(), description: description.trim(), documentation_url: docs.trim() };
    if (feature !== undefined) return onSaved(await changeFeature(feature.id, body));
    const created = await createFeature({
      ...body,
      stage,
      ...(flagId === "" ? {} : { feature_flag_id: Number(flagId) }),
    });
    toast(w.created);
    onSaved(created);
  });
  return (
    <FormDialog
      title={feature === undefined ? w.newFeature : w.editNamed(feature.name)}
      form={form}
      action={feature === undefined ? w.createFeature : messages.frame.save}
      onCancel={onClose}
      onClose={onClose}
    >
      <Field
        label={w.name}
        value={name}
        onInput={setName}
        isRequired
        autofocus
        error={form.errorOf("name")}
      />
      <Area
        label={w.description}
        value={description}
        onInput={setDescription}
        error={form.errorOf("description")}
      />
      <Field
        label={w.docs}
        type="url"
        value={docs}
        onInput={setDocs}
        error={form.errorOf("documentation_url")}
      />
      {feature === undefined && (
        <>
          <Select
            label={w.stage}
            value={stage}
            choices={Object.entries(w.stages) as [Stage, string][]}
            onChange={setStage}
          />
          <p class="help">{w.effects[stage]}</p>
          <Select
            label={w.flag}
            value={flagId}
            choices={[
              ["", w.newFlag] as const,
              ...(flags.data?.results ?? []).map(({ id, key }) => [String(id), key] as const),
            ]}
            onChange={setFlagId}
          />
          <p class={form.errorOf("feature_flag_id") ? "error" : "help"}>
            {form.errorOf("feature_flag_id") ?? w.flagHelp}
          </p>
        </>
      )}
    </FormDialog>
  );
}
