/** Copies a flag to another project, disabled by default. */

import { Checkbox, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { toast } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { project, projects } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import type { Flag } from "../../model/flags.ts";

const w = messages.flag.copy;
/** Fields of a flag that are independent of its project. */
const copied = [
  "key",
  "name",
  "filters",
  "tags",
  "ensure_experience_continuity",
  "is_remote_configuration",
  "has_encrypted_payloads",
  "evaluation_runtime",
  "bucketing_identifier",
] as const satisfies readonly (keyof Flag)[];

export function CopyFlag({ flag, onClose }: { flag: Flag; onClose: () => void }) {
  const others = projects.value.filter(({ id }) => id !== project.value?.id);
  const form = useForm({ target: String(others[0]?.id ?? ""), isOff: true }, async ({ target, isOff }) => {
    const body = Object.fromEntries(copied.map((field) => [field, flag[field]]));
    await request(`/api/projects/${target}/feature_flags/`, {
      method: "POST",
      body: { ...body, active: flag.active && !isOff },
    });
    toast(w.done(others.find(({ id }) => String(id) === target)?.name ?? target));
    onClose();
  });
  return (
    <FormDialog
      title={w.title}
      form={form}
      action={w.copy}
      isDisabled={others.length === 0}
      onClose={onClose}
    >
      {others.length === 0 ? (
        <p>{w.none}</p>
      ) : (
        <>
          <Select
            label={w.to}
            choices={others.map(({ id, name }) => [String(id), name] as const)}
            {...form.choice("target")}
          />
          <Checkbox label={w.off} {...form.toggle("isOff")} />
        </>
      )}
    </FormDialog>
  );
}
