/** Creates a flag: key and initial release conditions. */

import { Field, Segments, ShareField } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { request } from "../../lib/api.ts";
import { useForm, useUnsavedFields } from "../../lib/form.ts";
import { useAddress } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import type { Flag } from "../../model/flags.ts";

const w = messages.flags.create;

type Kind = keyof typeof w.kinds;

/** Filters of a new flag. */
export function firstFilters(kind: Kind, percentage: number) {
  if (kind === "off") return { groups: [] };
  const share = kind === "percentage" ? percentage : kind === "everybody" ? 100 : 0;
  return { groups: [{ properties: [], rollout_percentage: share }] };
}

export function NewFlag({ onClose, onCreated }: { onClose: () => void; onCreated: (flag: Flag) => void }) {
  // The palette names a key in the address.
  const { new: sent = "" } = useAddress().query;
  const unsaved = useUnsavedFields(`new flag ${sent}`);
  const [key, setKey] = unsaved.field("key", sent === "1" ? "" : sent);
  const [name, setName] = unsaved.field("name", "");
  const [tags, setTags] = unsaved.field("tags", "");
  const [kind, setKind] = unsaved.field<Kind>("kind", "off");
  const [percentage, setPercentage] = unsaved.field("percentage", 50);
  const form = useForm({}, async () => {
    const flag = await request<Flag>(inProject("feature_flags/"), {
      method: "POST",
      body: {
        key: key.trim(),
        name: name.trim(),
        active: kind !== "some",
        filters: firstFilters(kind, percentage),
        tags: tags.split(",").flatMap((tag) => tag.trim() || []),
      },
    });
    unsaved.clear();
    onCreated(flag);
  });
  return (
    <FormDialog
      title={w.title}
      form={form}
      action={w.create}
      onCancel={() => {
        unsaved.clear();
        onClose();
      }}
      onClose={onClose}
    >
      <Field
        label={w.key}
        value={key}
        onInput={setKey}
        help={w.keyHelp}
        error={form.errorOf("key")}
        isRequired
        autofocus
      />
      <Field label={w.name} value={name} onInput={setName} />
      <div class="stack tight">
        <span class="label">{w.kind}</span>
        <Segments
          label={w.kind}
          value={kind}
          choices={Object.entries(w.kinds) as [Kind, string][]}
          onChange={setKind}
        />
        {kind === "percentage" && (
          <ShareField label={w.percentage} value={percentage} onInput={setPercentage} isRequired />
        )}
        {kind === "some" && <p class="help">{w.targetedHelp}</p>}
      </div>
      <Field label={w.tags} value={tags} onInput={setTags} help={w.tagsHelp} />
    </FormDialog>
  );
}
