/** Editor of a flag's release: type, variants, payloads and conditions. */

import { useGroupTypes } from "../../components/conditions.tsx";
import { Area, Segments } from "../../components/fields.tsx";
import { AddButton } from "../../components/primitives.tsx";
import { messages } from "../../messages/index.ts";
import {
  type Draft,
  evenShares,
  getKind,
  getProblems,
  renameVariant,
  type ValueKind,
} from "../../model/draft.ts";
import type { ConditionSet, Filters, Flag } from "../../model/flags.ts";
import { ConditionSetCard } from "./condition-set.tsx";
import type { Counted } from "./effect.tsx";
import { payloadJson } from "./payload.ts";
import { Variants } from "./variants.tsx";

const w = messages.flag;

export function Release({
  flag,
  draft,
  blastRadius,
  onChange,
  disabledReason,
}: {
  flag: Flag;
  draft: Draft;
  /** Of the draft. */
  blastRadius: Counted;
  onChange: (draft: Draft) => void;
  disabledReason: string | false;
}) {
  const problems = getProblems(draft);
  const groupTypes = useGroupTypes();
  const kind = getKind(draft);
  const { filters } = draft;
  const sets = filters.groups ?? [];
  const variants = filters.multivariate?.variants ?? [];
  const putFilters = (changed: Partial<Filters>) =>
    onChange({ ...draft, filters: { ...filters, ...changed } });
  const putSet = (position: number, changed: ConditionSet) =>
    putFilters({ groups: sets.map((other, index) => (index === position ? changed : other)) });
  const moveSet = (position: number, by: number) => {
    const next = [...sets];
    const [moved] = next.splice(position, 1);
    next.splice(position + by, 0, moved!);
    putFilters({ groups: next });
  };
  const chooseKind = (next: ValueKind) => {
    if (next === kind) return;
    const shares = evenShares(2);
    const wanted =
      next === "variants"
        ? {
            variants: [
              { key: "control", rollout_percentage: shares[0]! },
              { key: "test", rollout_percentage: shares[1]! },
            ],
          }
        : null;
    const truth = filters.payloads?.true;
    onChange({
      ...draft,
      isRemote: next === "remote",
      filters: {
        ...filters,
        multivariate: wanted,
        payloads: next === "variants" || truth === undefined ? {} : { true: truth },
        groups: sets.map((set) => ({ ...set, variant: null })),
      },
    });
  };
  const putPayload = (name: string, text: string) => {
    const { [name]: _, ...others } = filters.payloads ?? {};
    putFilters({ payloads: text.trim() === "" ? others : { ...others, [name]: text } });
  };

  return (
    <fieldset class="editor-fields" disabled={!!disabledReason} title={disabledReason || undefined}>
      <legend class="unseen">{w.tabs.release}</legend>
      <section class="card stack">
        <h2>{w.valueTitle}</h2>
        <Segments
          label={w.kind}
          value={kind}
          choices={Object.entries(w.kinds) as [ValueKind, string][]}
          onChange={chooseKind}
        />
        {kind === "variants" ? (
          <Variants
            variants={variants}
            payloads={filters.payloads ?? {}}
            problems={problems}
            isEncrypted={flag.has_encrypted_payloads === true}
            onVariants={(next) => putFilters({ multivariate: { ...filters.multivariate, variants: next } })}
            onRename={(before, after) => putFilters(renameVariant(filters, before, after))}
            onPayload={putPayload}
          />
        ) : (
          <Area
            label={w.payloadsTitle}
            value={payloadJson(filters.payloads?.true)}
            onInput={(text) => putPayload("true", text)}
            error={problems.get("payload true")}
            rows={kind === "remote" ? 5 : 2}
          />
        )}
        <p class="help">{flag.has_encrypted_payloads ? w.encrypted : w.payloadHelp}</p>
      </section>

      <section class="stack">
        <h2>{w.setsTitle}</h2>
        <p class="help">{sets.length === 0 ? w.noSets : w.setsHelp}</p>
        {sets.map((set, position) => (
          <ConditionSetCard
            key={position}
            position={position}
            count={sets.length}
            set={set}
            variants={variants.map(({ key }) => key)}
            groupTypes={groupTypes}
            flagGroupType={filters.aggregation_group_type_index ?? null}
            blastRadius={blastRadius === null ? null : blastRadius?.sets[position]}
            onChange={(changed) => putSet(position, changed)}
            onMove={(by) => moveSet(position, by)}
            onDuplicate={() =>
              putFilters({
                groups: [...sets.slice(0, position + 1), structuredClone(set), ...sets.slice(position + 1)],
              })
            }
            onRemove={() => putFilters({ groups: sets.filter((_, index) => index !== position) })}
          />
        ))}
        <div>
          <AddButton
            kind="plain"
            focused=".conditions button"
            onAdd={() => putFilters({ groups: [...sets, { properties: [], rollout_percentage: 100 }] })}
          >
            {w.addSet}
          </AddButton>
        </div>
      </section>
    </fieldset>
  );
}
