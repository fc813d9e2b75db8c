/** Copies a flag to another project, disabled by default. */

import { useState } from "preact/hooks";
import { Dialog } from "../../components/dialog.tsx";
import { Checkbox, Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { toast } from "../../components/toast.tsx";
import { errorMessage, request } from "../../lib/api.ts";
import { project, projects } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import type { Flag } from "../../model/flags.ts";

const w = words.flag.copy;
/** Fields of a flag that are independent of its project. */
const copied = [
  ...["key", "name", "filters", "tags", "ensure_experience_continuity", "is_remote_configuration"],
  ...["has_encrypted_payloads", "evaluation_runtime", "bucketing_identifier"],
];

export function CopyFlag({ flag, onClose }: { flag: Flag; onClose: () => void }) {
  const others = projects.value.filter(({ id }) => id !== project.value?.id);
  const [target, setTarget] = useState(String(others[0]?.id ?? ""));
  const [isOff, setOff] = useState(true);
  const [error, setError] = useState<string>();
  const copy = async () => {
    const body = Object.fromEntries(copied.map((field) => [field, flag[field]]));
    try {
      await request(`/api/projects/${target}/feature_flags/`, {
        method: "POST",
        body: { ...body, active: flag.active && !isOff },
      });
      toast(w.done(others.find(({ id }) => String(id) === target)?.name ?? target));
      onClose();
    } catch (failure) {
      setError(errorMessage(failure));
    }
  };
  return (
    <Dialog
      title={w.title}
      onClose={onClose}
      onSubmit={copy}
      actions={
        <Button kind="main" type="submit" isDisabled={others.length === 0}>
          {w.copy}
        </Button>
      }
    >
      {others.length === 0 ? (
        <p>{w.none}</p>
      ) : (
        <>
          <Select
            label={w.to}
            value={target}
            choices={others.map(({ id, name }) => [String(id), name] as const)}
            onChange={setTarget}
          />
          <Checkbox label={w.off} isOn={isOff} onChange={setOff} />
        </>
      )}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </Dialog>
  );
}
