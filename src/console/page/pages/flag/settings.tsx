/** Settings of a flag: key, tags, bucketing, runtime, access, scheduled changes. */

import { Checkbox, Field, Select } from "../../components/fields.tsx";
import { TokenField } from "../../components/tokens.tsx";
import { messages } from "../../messages/index.ts";
import type { Draft } from "../../model/draft.ts";
import type { Flag } from "../../model/flags.ts";
import { Access } from "./access.tsx";
import { Schedule } from "./pending.tsx";

const w = messages.flag;

export function FlagSettings({
  flag,
  draft,
  round,
  disabledReason,
  onChange,
}: {
  flag: Flag;
  draft: Draft;
  /** Changes when there may be a new scheduled change. */
  round: number;
  disabledReason: string | false;
  onChange: (draft: Draft) => void;
}) {
  return (
    <>
      <fieldset class="editor-fields" disabled={!!disabledReason} title={disabledReason || undefined}>
        <legend class="unseen">{w.tabs.settings}</legend>
        <section class="card stack">
          <h2>{w.generalTitle}</h2>
          <div class="columns">
            <Field
              label={w.key}
              value={draft.key}
              onInput={(key) => onChange({ ...draft, key })}
              help={draft.key === flag.key ? undefined : w.keyWarning}
            />
            <TokenField
              label={w.tags}
              isLabelHidden={false}
              values={draft.tags}
              addLabel={w.addTag}
              onChange={(tags) => onChange({ ...draft, tags })}
            />
            <Select
              label={w.bucketing}
              value={draft.bucketing}
              choices={Object.entries(w.bucketings)}
              onChange={(bucketing) => onChange({ ...draft, bucketing })}
            />
            <Select
              label={w.runtime}
              value={draft.runtime}
              choices={Object.entries(w.runtimes)}
              onChange={(runtime) => onChange({ ...draft, runtime })}
            />
          </div>
          <Checkbox
            label={w.keep}
            isOn={draft.persistsAcrossLogin}
            onChange={(persistsAcrossLogin) => onChange({ ...draft, persistsAcrossLogin })}
          />
        </section>
      </fieldset>
      <Access flag={flag} />
      <Schedule flag={flag} round={round} disabledReason={disabledReason} />
    </>
  );
}
