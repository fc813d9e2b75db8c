/** First step of an experiment: what is expected, and the flag that decides. */

import { Area, Field, Segments, Select } from "../../components/fields.tsx";
import { request } from "../../lib/api.ts";
import { useUnsavedFields } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject, project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import { changeExperiment, type Experiment } from "../../model/experiments.ts";
import type { FlagPage } from "../../model/flags.ts";
import { StepForm } from "./step-form.tsx";

const w = lazyMessages.experiments;
const web = lazyMessages.webExperiments;
const flagsMax = 500;

export function Hypothesis({
  experiment,
  rejection = false,
  onDone,
}: {
  /** Undefined: a new one. */
  experiment?: Experiment;
  rejection?: string | false;
  onDone: (after: Experiment) => void;
}) {
  const unsaved = useUnsavedFields("hypothesis");
  const [name, setName] = unsaved.field("name", experiment?.name ?? "");
  const [text, setText] = unsaved.field("text", experiment?.description ?? "");
  const [kind, setKind] = unsaved.field<Experiment["type"]>("kind", "product");
  const [from, setFrom] = unsaved.field<keyof typeof w.flagChoices>("from", "new");
  const [key, setKey] = unsaved.field("key", "");
  const [chosen, setChosen] = unsaved.field("chosen", "");
  const flags = useResource<FlagPage>(
    experiment === undefined && from === "existing" ? `flags for experiments ${project.value?.id}` : null,
    (signal) => request(inProject(`experiments/eligible_feature_flags/?limit=${flagsMax}`), { signal }),
  );
  const known = flags.data?.results ?? [];
  const send = async () => {
    const body = { name: name.trim(), description: text.trim() };
    if (experiment !== undefined) return onDone(await changeExperiment(experiment.id, body));
    const flagKey = from === "existing" ? chosen : key.trim();
    const created = await request<Experiment>(inProject("experiments/"), {
      method: "POST",
      body: { ...body, type: kind, ...(flagKey === "" ? {} : { feature_flag_key: flagKey }) },
    });
    onDone(created);
  };
  return (
    <StepForm title={w.steps.hypothesis} unsaved={unsaved} onSend={send} disabledReason={rejection}>
      {(errorOf) => (
        <>
          <Field label={w.name} value={name} onInput={setName} isRequired autofocus error={errorOf("name")} />
          <Area label={w.hypothesis} value={text} onInput={setText} error={errorOf("description")} />
          <p class="help">{w.hypothesisHelp}</p>
          {experiment === undefined && (
            <>
              <Segments
                label={web.kind}
                value={kind}
                choices={Object.entries(web.kinds) as [typeof kind, string][]}
                onChange={setKind}
              />
              <p class="help">{web.kindHelp[kind]}</p>
              <Segments
                label={w.flag}
                value={from}
                choices={Object.entries(w.flagChoices) as [keyof typeof w.flagChoices, string][]}
                onChange={setFrom}
              />
              {from === "new" ? (
                <Field
                  label={w.flagKey}
                  value={key}
                  onInput={setKey}
                  help={w.flagHelp}
                  error={errorOf("feature_flag_key") ?? errorOf("key")}
                />
              ) : (
                <>
                  <Select
                    label={w.flag}
                    value={chosen}
                    choices={[["", w.choose], ...known.map((flag) => [flag.key, flag.key] as const)]}
                    onChange={setChosen}
                  />
                  <p class={errorOf("feature_flag_key") ? "error" : "help"}>
                    {errorOf("feature_flag_key") ?? w.existingHelp}
                  </p>
                </>
              )}
            </>
          )}
        </>
      )}
    </StepForm>
  );
}
