/** Variants with their shares and payloads. */

import { decimal } from "../../lib/format.ts";
import { evenShares } from "../../model/draft.ts";
import type { Variant } from "../../model/flags.ts";
import { Button } from "../../parts/basics.tsx";
import { Area, Field } from "../../parts/fields.tsx";
import { words } from "../../words/index.ts";
import { payloadText } from "./payload.ts";

const w = words.flag;

export function Variants({
  variants,
  payloads,
  problems,
  isEncrypted,
  onVariants,
  onPayload,
}: {
  variants: readonly Variant[];
  payloads: Record<string, unknown>;
  problems: ReadonlyMap<string, string>;
  isEncrypted: boolean;
  onVariants: (variants: Variant[], payloads?: Record<string, unknown>) => void;
  onPayload: (key: string, text: string) => void;
}) {
  const sum = variants.reduce((total, { rollout_percentage: share }) => total + share, 0);
  const put = (place: number, changed: Variant) => {
    const before = variants[place]!.key;
    const next = variants.map((other, index) => (index === place ? changed : other));
    if (changed.key === before || payloads[before] === undefined) return onVariants(next);
    const { [before]: payload, ...others } = payloads;
    onVariants(next, { ...others, [changed.key]: payload });
  };
  const add = () => {
    let number = variants.length + 1;
    while (variants.some(({ key }) => key === `variant-${number}`)) number++;
    onVariants([...variants, { key: `variant-${number}`, rollout_percentage: 0 }]);
  };
  const spread = () => {
    const shares = evenShares(variants.length);
    onVariants(variants.map((variant, place) => ({ ...variant, rollout_percentage: shares[place]! })));
  };
  return (
    <div class="stack tight">
      <h3>{w.variantsTitle}</h3>
      {variants.map((variant, place) => (
        <div key={place} class="variant">
          <Field
            label={w.variantKey}
            isLabelHidden={place > 0}
            value={variant.key}
            onInput={(key) => put(place, { ...variant, key })}
          />
          <Field
            label={w.variantShare}
            isLabelHidden={place > 0}
            type="number"
            min={0}
            max={100}
            step="any"
            suffix="%"
            value={String(variant.rollout_percentage)}
            onInput={(text) => put(place, { ...variant, rollout_percentage: Number(text) })}
          />
          <Area
            label={w.payload(variant.key)}
            isLabelHidden={false}
            rows={1}
            value={isEncrypted ? "" : payloadText(payloads[variant.key])}
            onInput={(text) => onPayload(variant.key, text)}
            error={problems.get(`payload ${variant.key}`)}
          />
          <Button
            kind="quiet"
            icon="trash"
            label={`${w.removeVariant}: ${variant.key}`}
            isDisabled={variants.length === 1}
            onClick={() => {
              const { [variant.key]: _, ...others } = payloads;
              onVariants(
                variants.filter((_, index) => index !== place),
                others,
              );
            }}
          />
        </div>
      ))}
      <div class="row">
        <Button kind="quiet" icon="plus" onClick={add}>
          {w.addVariant}
        </Button>
        <Button kind="quiet" onClick={spread}>
          {w.spread}
        </Button>
        <span class={problems.has("variants") ? "error" : "muted"} role="status">
          {problems.get("variants") ?? w.sum(decimal(sum))}
        </span>
      </div>
    </div>
  );
}
