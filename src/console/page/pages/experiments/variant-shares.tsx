/** Second step of an experiment: its variants, their percentages, and the baseline. */

import { Field, Select, ShareField } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { useUnsavedFields } from "../../lib/form.ts";
import { decimal } from "../../lib/format.ts";
import { to } from "../../lib/router.ts";
import { messages } from "../../messages/index.ts";
import { lazyMessages } from "../../messages/later.ts";
import { evenShares } from "../../model/draft.ts";
import { changeExperiment, type StepProps } from "../../model/experiments.ts";
import type { Variant } from "../../model/flags.ts";
import { StepForm } from "./step-form.tsx";

const w = lazyMessages.experiments;
const v = messages.flag;
const variantsMax = 20;

/** Why the variants cannot be saved. */
export function getVariantProblem(variants: readonly Variant[]): string | undefined {
  if (new Set(variants.map(({ key }) => key.trim())).size < variants.length) return v.variantKeysNotUnique;
  const sum = variants.reduce((total, { rollout_percentage: share }) => total + share, 0);
  return Math.abs(sum - 100) < 0.001 ? undefined : v.sumWrong(decimal(sum));
}

/** Keys and percentages of variants. */
export function ShareRows<Of extends Variant>({
  variants,
  isFixed,
  isRowFixed = () => false,
  fresh,
  onChange,
}: {
  variants: readonly Of[];
  isFixed: boolean;
  /** Whether this variant can neither be renamed nor removed. */
  isRowFixed?: (variant: Of) => boolean;
  fresh: (key: string) => Of;
  onChange: (variants: Of[]) => void;
}) {
  const problem = getVariantProblem(variants);
  const put = (position: number, changed: Partial<Variant>) =>
    onChange(variants.map((variant, index) => (index === position ? { ...variant, ...changed } : variant)));
  const spread = (all: readonly Of[]) => {
    const shares = evenShares(all.length);
    onChange(all.map((item, position) => ({ ...item, rollout_percentage: shares[position]! })));
  };
  const add = () => {
    const keys = variants.map(({ key }) => key.trim());
    let position = variants.length;
    while (keys.includes(`test-${position}`)) position++;
    spread([...variants, fresh(`test-${position}`)]);
  };
  return (
    <fieldset class="editor-fields" disabled={isFixed}>
      <legend class="unseen">{w.steps.variants}</legend>
      {variants.map((variant, position) => (
        <div key={position} class="variant short">
          <Field
            label={v.variantKey}
            isLabelHidden={position > 0}
            value={variant.key}
            isRequired
            isDisabled={isFixed || isRowFixed(variant)}
            onInput={(key) => put(position, { key })}
          />
          <ShareField
            label={v.variantShare}
            isLabelHidden={position > 0}
            value={variant.rollout_percentage}
            onInput={(share) => put(position, { rollout_percentage: share })}
          />
          <Button
            kind="quiet"
            icon="trash"
            label={`${v.removeVariant}: ${variant.key}`}
            isDisabled={variants.length <= 2 || isFixed || isRowFixed(variant)}
            onClick={() => spread(variants.filter((_, index) => index !== position))}
          />
        </div>
      ))}
      <div class="row">
        <Button kind="quiet" icon="plus" isDisabled={variants.length >= variantsMax || isFixed} onClick={add}>
          {v.addVariant}
        </Button>
        <Button kind="quiet" isDisabled={isFixed} onClick={() => spread(variants)}>
          {v.spread}
        </Button>
        <span class={problem ? "error" : "muted"} role="status">
          {problem ?? v.sum("100")}
        </span>
      </div>
    </fieldset>
  );
}

export function VariantShares({ experiment, rejection, onDone }: StepProps) {
  const { feature_flag: flag, stats_config: stats } = experiment;
  const unsaved = useUnsavedFields("variants");
  const [variants, setVariants] = unsaved.field<Variant[]>("variants", [
    ...(flag.filters.multivariate?.variants ?? []),
  ]);
  const keys = variants.map(({ key }) => key.trim());
  const [chosen, setBaseline] = unsaved.field("chosen", stats.baseline_variant_key ?? "control");
  const baseline = keys.includes(chosen) ? chosen : (keys.find((key) => key === "control") ?? keys[0] ?? "");
  const isFixed = experiment.status !== "draft";
  const send = async () => {
    if (getVariantProblem(variants) !== undefined && !isFixed) return false;
    const sent = variants.map((variant, position) => ({ ...variant, key: keys[position]! }));
    const after = await changeExperiment(experiment.id, {
      ...(isFixed ? {} : { parameters: { feature_flag_variants: sent } }),
      stats_config: { ...stats, baseline_variant_key: baseline },
    });
    onDone(after);
    return true;
  };
  return (
    <StepForm title={w.steps.variants} unsaved={unsaved} onSend={send} disabledReason={rejection}>
      <p>
        {w.flag}: <a href={to(`flags/${flag.id}`)}>{flag.key}</a>
      </p>
      {isFixed && <p class="help">{w.variantsFixed}</p>}
      <ShareRows
        variants={variants}
        isFixed={isFixed}
        fresh={(key) => ({ key, rollout_percentage: 0 })}
        onChange={setVariants}
      />
      <Select
        label={w.baselineVariant}
        value={baseline}
        choices={keys.map((key) => [key, key] as const)}
        onChange={setBaseline}
      />
    </StepForm>
  );
}
