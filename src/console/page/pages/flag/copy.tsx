/** Copies a flag to another project, switched off unless it is wanted otherwise. */

import { useState } from "preact/hooks";
import { ask, wordsOf } from "../../lib/api.ts";
import { project, projects } from "../../lib/session.ts";
import type { Flag } from "../../model/flags.ts";
import { Button } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Checkbox, Select } from "../../parts/fields.tsx";
import { tell } from "../../parts/toast.tsx";
import { words } from "../../words/index.ts";

const w = words.flag.copy;
/** What a flag is, wherever it stands. */
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
      await ask(`/api/projects/${target}/feature_flags/`, {
        method: "POST",
        body: { ...body, active: flag.active && !isOff },
      });
      tell(w.done(others.find(({ id }) => String(id) === target)?.name ?? target));
      onClose();
    } catch (failure) {
      setError(wordsOf(failure));
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
