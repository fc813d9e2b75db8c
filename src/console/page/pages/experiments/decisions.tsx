/** Transitions of an experiment: buttons, and a confirmation for each with its effect on the flag. */

import { useState } from "preact/hooks";
import { Area, Checkbox, Field, Select } from "../../components/fields.tsx";
import { FormDialog } from "../../components/form.tsx";
import { Menu } from "../../components/menu.tsx";
import { Button } from "../../components/primitives.tsx";
import { toast } from "../../components/toast.tsx";
import { request } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useResource } from "../../lib/resource.ts";
import { to, useAddress } from "../../lib/router.ts";
import { project } from "../../lib/session.ts";
import { lazyMessages } from "../../messages/later.ts";
import {
  changeExperiment,
  type Experiment,
  experimentPath,
  getRejection,
  type Results,
  type Status,
  variantKeys,
} from "../../model/experiments.ts";
import { filterDifferences } from "../../model/filter-differences.ts";
import type { Filters } from "../../model/flags.ts";
import { hasChanges, type WebExperiment, webExperimentPath } from "../../model/web-experiments.ts";

const w = lazyMessages.experiments;

type Action = keyof typeof w.actions;

const mainByStatus: Record<Status, readonly Action[]> = {
  draft: ["launch"],
  running: ["ship_variant", "end", "pause"],
  paused: ["resume", "ship_variant", "end"],
  stopped: ["ship_variant"],
};
const moreByStatus: Record<Status, readonly Action[]> = {
  draft: ["duplicate", "delete"],
  running: ["duplicate", "reset", "delete"],
  paused: ["duplicate", "reset", "delete"],
  stopped: ["duplicate", "reset", "archive", "delete"],
};

function getActions({ status, archived }: Experiment): { main: readonly Action[]; more: readonly Action[] } {
  if (archived) return { main: ["unarchive"], more: ["duplicate", "reset", "delete"] };
  return { main: mainByStatus[status], more: moreByStatus[status] };
}

export function Decisions({
  experiment,
  results,
  onDone,
}: {
  experiment: Experiment;
  results: Results | undefined;
  onDone: (action: Action) => void;
}) {
  const [opened, setOpened] = useState<Action>();
  const rejection = getRejection(experiment);
  const { main, more } = getActions(experiment);
  return (
    <div class="row">
      {main.map((action, position) => (
        <Button
          key={action}
          kind={position === 0 && action === "launch" ? "main" : "plain"}
          disabledReason={rejection}
          onClick={() => setOpened(action)}
        >
          {w.actions[action]}
        </Button>
      ))}
      <Button href={to(`experiments/${experiment.id}/setup`)}>{w.setup}</Button>
      <Menu
        label={w.moreActions}
        face="⋯"
        items={more.map((action) => [w.actions[action], () => setOpened(action), rejection])}
      />
      {opened && (
        <Decision
          action={opened}
          experiment={experiment}
          results={results}
          onClose={() => setOpened(undefined)}
          onDone={() => {
            setOpened(undefined);
            // The page of a deleted experiment reports it, with Undo.
            if (opened !== "delete") toast(w.done[opened]);
            onDone(opened);
          }}
        />
      )}
    </div>
  );
}

type Conclusion = keyof typeof w.conclusions;
const conclusionChoices = [
  ["", w.noConclusion],
  ...(Object.entries(w.conclusions) as [Conclusion, string][]),
] as const;

function Decision({
  action,
  experiment,
  results,
  onClose,
  onDone,
}: {
  action: Action;
  experiment: Experiment;
  results: Results | undefined;
  onClose: () => void;
  onDone: () => void;
}) {
  const variants = variantKeys(experiment);
  const [variant, setVariant] = useState(
    variants.find((key) => key !== experiment.stats_config.baseline_variant_key && key !== "control") ?? "",
  );
  const [isForEveryone, setForEveryone] = useState(true);
  const [conclusion, setConclusion] = useState<Conclusion | "">(experiment.conclusion ?? "");
  const [comment, setComment] = useState(experiment.conclusion_comment ?? "");
  const [name, setName] = useState(w.copyOf(experiment.name));
  const [key, setKey] = useState(`${experiment.feature_flag.key}-copy`);
  const { go } = useAddress();
  const [isSure, setSure] = useState(false);
  const webExperiment = useResource<WebExperiment>(
    action === "launch" && experiment.type === "web"
      ? `web experiment ${project.value?.id} ${experiment.id}`
      : null,
    (signal) => request(webExperimentPath(experiment.id), { signal }),
  ).data;
  const hasMismatch = results?.sample_ratio?.mismatch === true;
  const isShipping = action === "ship_variant";
  const isConcluding = isShipping || action === "end";
  const isBlocked = isShipping && hasMismatch && !isSure;
  const form = useForm({}, async () => {
    if (action === "duplicate") {
      const body = { name: name.trim(), ...(key.trim() === "" ? {} : { feature_flag_key: key.trim() }) };
      const copy = await request<Experiment>(experimentPath(experiment.id, "duplicate/"), {
        method: "POST",
        body,
      });
      onDone();
      return go(`experiments/${copy.id}/setup`);
    }
    if (action === "delete") await changeExperiment(experiment.id, { deleted: true });
    else
      await request(experimentPath(experiment.id, `${action}/`), {
        method: "POST",
        body: {
          ...(isConcluding && {
            conclusion: conclusion === "" ? null : conclusion,
            conclusion_comment: comment.trim() === "" ? null : comment.trim(),
          }),
          ...(isShipping && { variant_key: variant, release_to_everyone: isForEveryone }),
        },
      });
    onDone();
  });
  const isDangerous = action === "delete" || action === "reset";
  return (
    <FormDialog
      title={w.actions[action]}
      form={form}
      action={w.actions[action]}
      kind={isDangerous ? "danger" : "main"}
      isDisabled={isBlocked}
      onCancel={onClose}
      onClose={onClose}
    >
      <p>{w.effects[action]}</p>
      {action === "duplicate" && (
        <>
          <Field label={w.name} value={name} onInput={setName} isRequired />
          <Field label={w.flagKey} value={key} onInput={setKey} help={w.duplicateHelp} />
        </>
      )}
      {action === "launch" && experiment.metrics.length + experiment.saved_metrics.length === 0 && (
        <p class="error">{w.launchNoMetrics}</p>
      )}
      {action === "launch" && webExperiment && !hasChanges(webExperiment) && (
        <p class="error">{lazyMessages.webExperiments.noChanges}</p>
      )}
      {isShipping && (
        <>
          <Select
            label={w.metric.variant}
            value={variant}
            choices={variants.map((key) => [key, key] as const)}
            onChange={setVariant}
          />
          <Checkbox label={w.releaseToEveryone} isOn={isForEveryone} onChange={setForEveryone} />
          <FlagChange experiment={experiment} variant={variant} isForEveryone={isForEveryone} />
          {hasMismatch && (
            <>
              <p class="error">{w.shipMismatch}</p>
              <Checkbox label={w.shipAnyway} isOn={isSure} onChange={setSure} />
            </>
          )}
        </>
      )}
      {isConcluding && (
        <>
          <Select
            label={w.conclusion}
            value={conclusion}
            choices={conclusionChoices}
            onChange={setConclusion}
          />
          <Area label={w.comment} value={comment} onInput={setComment} />
        </>
      )}
    </FormDialog>
  );
}

/** What shipping changes in the flag, as in its history. */
function FlagChange({
  experiment: { feature_flag: flag },
  variant,
  isForEveryone,
}: {
  experiment: Experiment;
  variant: string;
  isForEveryone: boolean;
}) {
  const groups = flag.filters.groups ?? [];
  // As the server ships: everyone first and the former sets below, or each set with the variant.
  const first = { properties: [], rollout_percentage: 100, variant };
  const shipped: Filters = {
    ...flag.filters,
    groups: isForEveryone ? [first, ...groups] : groups.map((group) => ({ ...group, variant })),
  };
  const lines = isForEveryone
    ? [w.shipFirst(variant), ...(groups.length > 0 ? [w.shipBelow(groups.length)] : [])]
    : filterDifferences(flag.filters, shipped);
  return (
    <div class="stack tight">
      <b>{w.flagChange(flag.key)}</b>
      <ul class="changes">
        {[...(flag.active ? [] : [w.flagOn]), ...lines].map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </div>
  );
}
