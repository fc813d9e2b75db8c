/** Editor of a flag: description, values, release conditions. */

import type { ComponentChildren } from "preact";
import { useGroupTypes } from "../../components/conditions.tsx";
import { Area, Checkbox, Field, Segments, Select } from "../../components/fields.tsx";
import { Button } from "../../components/primitives.tsx";
import { TokenField } from "../../components/tokens.tsx";
import { request } from "../../lib/api.ts";
import { useResource } from "../../lib/resource.ts";
import { to } from "../../lib/router.ts";
import { inProject } from "../../lib/session.ts";
import { words } from "../../messages/index.ts";
import { type BlastRadius, getPersons, useBlastRadius } from "../../model/blast-radius.ts";
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
import { payloadJson } from "./payload.ts";
import { Variants } from "./variants.tsx";

const w = words.flag;

export function Targeting({
  flag,
  draft,
  onChange,
  refusal,
}: {
  flag: Flag;
  draft: Draft;
  onChange: (draft: Draft) => void;
  refusal: string | false;
}) {
  const reach = useBlastRadius(draft.key, draft.filters);
  const problems = getProblems(draft);
  const groupTypes = useGroupTypes();
  const kind = getKind(draft);
  const { filters } = draft;
  const sets = filters.groups ?? [];
  const variants = filters.multivariate?.variants ?? [];
  const dependents = useResource<{ id: number; key: string }[]>(
    `dependents ${flag.id} ${flag.version}`,
    (signal) => request(inProject(`feature_flags/${flag.id}/dependent_flags/`), { signal }),
  );

  const putFilters = (changed: Partial<Filters>) =>
    onChange({ ...draft, filters: { ...filters, ...changed } });
  const putSet = (position: number, changed: ConditionSet) =>
    putFilters({ groups: sets.map((other, index) => (index === position ? changed : other)) });
  const moveSet = (place: number, by: number) => {
    const next = [...sets];
    const [moved] = next.splice(place, 1);
    next.splice(place + by, 0, moved!);
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
    <fieldset class="editor-fields" disabled={!!refusal} title={refusal || undefined}>
      <legend class="unseen">{w.tabs.targeting}</legend>
      <Card title={w.valueTitle}>
        <div class="row">
          <Segments
            label={w.kind}
            value={kind}
            choices={Object.entries(w.kinds) as [ValueKind, string][]}
            onChange={chooseKind}
          />
          <Select
            label={w.bucketing}
            isLabelHidden
            value={draft.bucketing}
            choices={Object.entries(w.bucketings).map(
              ([name, text]) => [name, `${w.bucketing}: ${text}`] as const,
            )}
            onChange={(bucketing) => onChange({ ...draft, bucketing })}
          />
          <Select
            label={w.runtime}
            isLabelHidden
            value={draft.runtime}
            choices={Object.entries(w.runtimes).map(
              ([name, text]) => [name, `${w.runtime}: ${text}`] as const,
            )}
            onChange={(runtime) => onChange({ ...draft, runtime })}
          />
          <Checkbox
            label={w.keep}
            isOn={draft.keepsOverLogin}
            onChange={(keepsOverLogin) => onChange({ ...draft, keepsOverLogin })}
          />
        </div>
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
      </Card>

      <section class="stack">
        <div class="row apart">
          <h2>{w.setsTitle}</h2>
          <span class="muted" role="status">
            <TotalBlastRadius reach={reach} />
          </span>
        </div>
        <p class="help">{sets.length === 0 ? w.noSets : w.setsHelp}</p>
        {sets.map((set, place) => (
          <ConditionSetCard
            key={place}
            place={place}
            count={sets.length}
            set={set}
            variants={variants.map(({ key }) => key)}
            groupTypes={groupTypes}
            flagGroupType={filters.aggregation_group_type_index ?? null}
            reach={reach === null ? null : reach?.sets[place]}
            onChange={(changed) => putSet(place, changed)}
            onMove={(by) => moveSet(place, by)}
            onDuplicate={() =>
              putFilters({
                groups: [...sets.slice(0, place + 1), structuredClone(set), ...sets.slice(place + 1)],
              })
            }
            onRemove={() => putFilters({ groups: sets.filter((_, index) => index !== place) })}
          />
        ))}
        <div>
          <Button
            icon="plus"
            onClick={() => putFilters({ groups: [...sets, { properties: [], rollout_percentage: 100 }] })}
          >
            {w.addSet}
          </Button>
        </div>
      </section>

      <Card title={w.aboutTitle}>
        <div class="columns">
          <Field
            label={w.key}
            value={draft.key}
            onInput={(key) => onChange({ ...draft, key })}
            help={draft.key === flag.key ? undefined : w.keyWarning}
          />
          <Field label={w.description} value={draft.name} onInput={(name) => onChange({ ...draft, name })} />
          <TokenField
            label={w.tags}
            isLabelHidden={false}
            values={draft.tags}
            addLabel={w.addTag}
            onChange={(tags) => onChange({ ...draft, tags })}
          />
        </div>
        {(dependents.data?.length ?? 0) > 0 && (
          <p>
            {w.usedBy(dependents.data!.length)}:{" "}
            {dependents.data!.map(({ id, key }, place) => (
              <>
                {place > 0 && ", "}
                <a href={to(`flags/${id}`)}>{key}</a>
              </>
            ))}
          </p>
        )}
      </Card>
    </fieldset>
  );
}

function TotalBlastRadius({ reach }: { reach: BlastRadius | undefined | null }) {
  if (reach === null) return <>{w.notCounted}</>;
  if (reach === undefined) return <>{w.counting}</>;
  const persons = getPersons(reach);
  // Sets that only target groups match no persons.
  const isAboutPersons = reach.populations.some(({ group_type_index: index }) => index === null);
  if (!isAboutPersons && reach.populations.length > 0) return null;
  return <>{w.together(persons.reached, persons.total)}</>;
}

function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card stack">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
