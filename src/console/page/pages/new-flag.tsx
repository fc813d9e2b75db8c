/** Makes a flag: a key, and who gets it to begin with. */

import { useState } from "preact/hooks";
import { asFailure, ask, type Failure } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { Flag } from "../model/flags.ts";
import { Button } from "../parts/basics.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field, Segments, ShareField } from "../parts/fields.tsx";
import { words } from "../words/index.ts";

const w = words.flags.create;

type Kind = keyof typeof w.kinds;

/** The filters a new flag begins with. */
export function firstFilters(kind: Kind, percentage: number) {
  if (kind === "off") return { groups: [] };
  const share = kind === "percentage" ? percentage : kind === "everybody" ? 100 : 0;
  return { groups: [{ properties: [], rollout_percentage: share }] };
}

export function NewFlag({ onClose, onMade }: { onClose: () => void; onMade: (flag: Flag) => void }) {
  const [key, setKey] = useState("");
  const [name, setName] = useState("");
  const [tags, setTags] = useState("");
  const [kind, setKind] = useState<Kind>("off");
  const [percentage, setPercentage] = useState(50);
  const [failure, setFailure] = useState<Failure>();
  const submit = async () => {
    try {
      const flag = await ask<Flag>(inProject("feature_flags/"), {
        method: "POST",
        body: {
          key: key.trim(),
          name: name.trim(),
          active: kind !== "some",
          filters: firstFilters(kind, percentage),
          tags: tags.split(",").flatMap((tag) => tag.trim() || []),
        },
      });
      onMade(flag);
    } catch (error) {
      setFailure(asFailure(error));
    }
  };
  return (
    <Dialog
      title={w.title}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <Button onClick={onClose}>{words.frame.cancel}</Button>
          <Button kind="main" type="submit">
            {w.create}
          </Button>
        </>
      }
    >
      <Field
        label={w.key}
        value={key}
        onInput={setKey}
        help={w.keyHelp}
        error={failure?.attr === "key" ? failure.detail : undefined}
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
        {kind === "some" && <p class="help">{w.someHelp}</p>}
      </div>
      <Field label={w.tags} value={tags} onInput={setTags} help={w.tagsHelp} />
      {failure && failure.attr !== "key" && (
        <p class="error" role="alert">
          {failure.detail}
        </p>
      )}
    </Dialog>
  );
}
