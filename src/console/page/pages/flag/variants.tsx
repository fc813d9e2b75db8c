/** Variants with percentages and payloads. */

import { useState } from "preact/hooks";
import { Area, Field, ShareField } from "../../components/fields.tsx";
import { AddButton, Button } from "../../components/primitives.tsx";
import { toastError } from "../../components/toast.tsx";
import { decimal } from "../../lib/format.ts";
import { messages } from "../../messages/index.ts";
import { evenShares } from "../../model/draft.ts";
import type { Variant } from "../../model/flags.ts";
import { payloadJson } from "./payload.ts";

const w = messages.flag;

export function Variants({
  variants,
  payloads,
  problems,
  isEncrypted,
  onVariants,
  onRename,
  onPayload,
}: {
  variants: readonly Variant[];
  payloads: Record<string, unknown>;
  problems: ReadonlyMap<string, string>;
  isEncrypted: boolean;
  onVariants: (variants: Variant[]) => void;
  /** Renames a variant, or removes it. */
  onRename: (before: string, after?: string) => void;
  onPayload: (key: string, text: string) => void;
}) {
  const sum = variants.reduce((total, { rollout_percentage: share }) => total + share, 0);
  const put = (position: number, changed: Variant) =>
    onVariants(variants.map((other, index) => (index === position ? changed : other)));
  // A partly typed key may equal another variant's: apply it when the field is left.
  const [typed, setTyped] = useState<{ position: number; key: string }>();
  const rename = ({ key: before }: Variant) => {
    const after = typed?.key.trim();
    setTyped(undefined);
    if (after === undefined || after === before) return;
    if (after === "" || variants.some(({ key }) => key === after)) toastError(w.variantKeyWrong);
    else onRename(before, after);
  };
  const add = () => {
    let number = variants.length + 1;
    while (variants.some(({ key }) => key === `variant-${number}`)) number++;
    onVariants([...variants, { key: `variant-${number}`, rollout_percentage: 0 }]);
  };
  const spread = () => {
    const shares = evenShares(variants.length);
    onVariants(variants.map((variant, position) => ({ ...variant, rollout_percentage: shares[position]! })));
  };
  return (
    <div class="stack tight">
      <h3>{w.variantsTitle}</h3>
      {variants.map((variant, position) => (
        <div key={position} class="variant">
          <div onFocusOut={() => rename(variant)}>
            <Field
              label={w.variantKey}
              isLabelHidden={position > 0}
              value={typed?.position === position ? typed.key : variant.key}
              onInput={(key) => setTyped({ position, key })}
            />
          </div>
          <ShareField
            label={w.variantShare}
            isLabelHidden={position > 0}
            value={variant.rollout_percentage}
            onInput={(share) => put(position, { ...variant, rollout_percentage: share })}
          />
          <Area
            label={w.payload(variant.key)}
            isLabelHidden={false}
            rows={1}
            value={isEncrypted ? "" : payloadJson(payloads[variant.key])}
            onInput={(text) => onPayload(variant.key, text)}
            error={problems.get(`payload ${variant.key}`)}
          />
          <Button
            kind="quiet"
            icon="trash"
            label={`${w.removeVariant}: ${variant.key}`}
            isDisabled={variants.length === 1}
            onClick={() => onRename(variant.key)}
          />
        </div>
      ))}
      <div class="row">
        <AddButton onAdd={add}>{w.addVariant}</AddButton>
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
