/** One condition set: conditions, rollout percentage and variant. */

import { type ConditionKind, Conditions } from "../../components/conditions.tsx";
import { Select, ShareField } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { messages } from "../../messages/index.ts";
import type { BlastRadius } from "../../model/blast-radius.ts";
import type { ConditionSet } from "../../model/flags.ts";

const w = messages.flag;

export function ConditionSetCard({
  position,
  count,
  set,
  variants,
  groupTypes,
  flagGroupType,
  blastRadius,
  onChange,
  onMove,
  onDuplicate,
  onRemove,
}: {
  position: number;
  count: number;
  set: ConditionSet;
  variants: readonly string[];
  groupTypes: readonly { group_type: string; group_type_index: number }[];
  flagGroupType: number | null;
  blastRadius: BlastRadius["sets"][number] | undefined | null;
  onChange: (set: ConditionSet) => void;
  onMove: (by: number) => void;
  onDuplicate: () => void;
  onRemove: () => void;
}) {
  const groupType = set.aggregation_group_type_index ?? flagGroupType;
  const share = set.rollout_percentage ?? 100;
  const properties = set.properties ?? [];
  const kinds: ConditionKind[] = groupType === null ? ["person", "cohort", "flag"] : ["group", "flag"];
  const groupName = groupTypes.find(({ group_type_index: index }) => index === groupType)?.group_type;
  const name = w.set(position + 1);
  return (
    <section class="card set" aria-label={name}>
      <div class="row apart">
        <h3>{name}</h3>
        <div class="row">
          {groupTypes.length > 0 && (
            <Select
              label={`${name}: ${w.about}`}
              isLabelHidden
              value={groupType === null ? "" : String(groupType)}
              choices={[
                ["", w.aboutPersons],
                ...groupTypes.map(
                  ({ group_type: type, group_type_index: index }) => [String(index), type] as const,
                ),
              ]}
              onChange={(next) =>
                onChange({
                  ...set,
                  properties: [],
                  aggregation_group_type_index: next === "" ? null : Number(next),
                })
              }
            />
          )}
          <span class="set-tools">
            <Button
              kind="quiet"
              icon="up"
              label={`${w.moveUp}: ${name}`}
              isDisabled={position === 0}
              onClick={() => onMove(-1)}
            />
            <Button
              kind="quiet"
              icon="down"
              label={`${w.moveDown}: ${name}`}
              isDisabled={position === count - 1}
              onClick={() => onMove(1)}
            />
            <Button kind="quiet" icon="copy" label={`${w.duplicate}: ${name}`} onClick={onDuplicate} />
            <Button kind="quiet" icon="trash" label={`${w.removeSet}: ${name}`} onClick={onRemove} />
          </span>
        </div>
      </div>
      {properties.length === 0 && <p class="muted">{w.everyone}</p>}
      <Conditions
        conditions={properties}
        onChange={(changed) => onChange({ ...set, properties: changed })}
        kinds={kinds}
        groupTypeIndex={groupType}
        isShowingProblems
      />
      <div class="row rollout">
        <span class="label" aria-hidden="true">
          {w.rollout}
        </span>
        <input
          type="range"
          min={0}
          max={100}
          step={1}
          value={share || 0}
          aria-label={`${name}: ${w.rollout}`}
          onInput={(event) => onChange({ ...set, rollout_percentage: Number(event.currentTarget.value) })}
        />
        <ShareField
          label={w.rollout}
          isLabelHidden
          class="share-field"
          value={share}
          onInput={(value) => onChange({ ...set, rollout_percentage: value })}
        />
        {variants.length > 0 && (
          <Select
            label={`${name}: ${w.variantOfSet}`}
            isLabelHidden
            value={set.variant ?? ""}
            choices={[
              ["", `${w.variantOfSet}: ${w.byShare}`],
              ...variants.map((key) => [key, `${w.variantOfSet}: ${key}`] as const),
            ]}
            onChange={(variant) => onChange({ ...set, variant: variant === "" ? null : variant })}
          />
        )}
        <span class="muted number reach">
          {blastRadius === null
            ? w.notCounted
            : blastRadius === undefined
              ? w.counting
              : w.blastRadius(blastRadius.reached, blastRadius.total, groupName ?? w.aboutPersons)}
        </span>
      </div>
    </section>
  );
}
