/** Editor of conditions on properties, cohorts and flags: one line each, with suggestions. */

import { useState } from "preact/hooks";
import { listOperators, operatorTable, valuelessOperators } from "../../../lib/operator-table.ts";
import { queryString, request } from "../lib/api.ts";
import type { GroupType } from "../lib/api-types.ts";
import { useResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";
import { type PropertyOwner, usePropertyValues } from "../model/definitions.ts";
import { conditionProblem } from "../model/draft.ts";
import { type Condition, readFlags } from "../model/flags.ts";
import { ChoiceField } from "./choice-popover.tsx";
import { Combobox } from "./combobox.tsx";
import { Select } from "./fields.tsx";
import { afterPress } from "./focus.ts";
import { PropertyField } from "./name-fields.tsx";
import { AddButton, Button } from "./primitives.tsx";
import { TokenField } from "./tokens.tsx";

const w = messages.flag.condition;

type Operator = keyof typeof w.operators;
const getOperators: Record<string, readonly Operator[]> = {
  property: [
    "exact",
    "is_not",
    "icontains",
    "not_icontains",
    "regex",
    "not_regex",
    "gt",
    "gte",
    "lt",
    "lte",
    "is_set",
    "is_not_set",
    "is_date_exact",
    "is_date_before",
    "is_date_after",
    "semver_eq",
    "semver_gte",
    "semver_lt",
  ] as const,
  cohort: ["in", "not_in"],
  flag: ["flag_evaluates_to"],
};
/** Operators that Explore supports. */
const plainOperators = getOperators.property!.filter((name) => operatorTable[name].isForEvents);
const optionsMax = 500;

export function useGroupTypes(): readonly GroupType[] {
  const types = useResource<GroupType[]>(`group types ${project.value?.id}`, (signal) =>
    request(inProject("groups_types/"), { signal }),
  );
  return types.data ?? [];
}

export type ConditionKind = "person" | "cohort" | "flag" | "group" | "event";

export function Conditions({
  conditions,
  onChange,
  kinds,
  groupTypeIndex,
  isShowingProblems,
  addLabel = messages.flag.addCondition,
  isPlain = false,
}: {
  conditions: readonly Condition[];
  onChange: (conditions: Condition[]) => void;
  kinds: readonly ConditionKind[];
  /** Index of the group type for group properties. */
  groupTypeIndex?: number | null | undefined;
  isShowingProblems?: boolean;
  addLabel?: string;
  /** Without operators for dates and versions. */
  isPlain?: boolean;
}) {
  const put = (position: number, condition: Condition) =>
    onChange(conditions.map((other, index) => (index === position ? condition : other)));
  const first = kinds[0]!;
  return (
    <div class="conditions">
      {conditions.map((condition, position) => (
        <ConditionLine
          key={position}
          condition={condition}
          kinds={kinds}
          groupTypeIndex={groupTypeIndex}
          onChange={(changed) => put(position, changed)}
          onRemove={() => onChange(conditions.filter((_, index) => index !== position))}
          problem={isShowingProblems ? conditionProblem(condition) : undefined}
          isFirst={position === 0}
          isPlain={isPlain}
        />
      ))}
      <div>
        <AddButton onAdd={() => onChange([...conditions, fresh(first, groupTypeIndex)])}>
          {addLabel}
        </AddButton>
      </div>
    </div>
  );
}

function fresh(kind: ConditionKind, groupTypeIndex: number | null | undefined): Condition {
  if (kind === "cohort") return { key: "id", type: "cohort", operator: "in", value: "" };
  if (kind === "flag") return { key: "", type: "flag", operator: "flag_evaluates_to", value: true };
  const group = kind === "group" ? { group_type_index: groupTypeIndex ?? 0 } : {};
  return { key: "", type: kind, operator: "exact", value: [], ...group };
}

function ConditionLine({
  condition,
  kinds,
  groupTypeIndex,
  onChange,
  onRemove,
  problem,
  isFirst,
  isPlain,
}: {
  condition: Condition;
  kinds: readonly ConditionKind[];
  groupTypeIndex: number | null | undefined;
  onChange: (condition: Condition) => void;
  onRemove: () => void;
  problem: string | undefined;
  isFirst: boolean;
  isPlain: boolean;
}) {
  // Incomplete input is not marked invalid until the field is left.
  const [isLeft, setLeft] = useState(false);
  const kind = (condition.type ?? "person") as ConditionKind;
  const isProperty = kind !== "cohort" && kind !== "flag";
  const operators = isProperty && isPlain ? plainOperators : getOperators[isProperty ? "property" : kind]!;
  const operator = (condition.operator ?? "exact") as Operator;
  // Keep an operator that the page does not offer.
  const choices = (operators.includes(operator) ? operators : [operator, ...operators]).map(
    (name) => [name, w.operators[name] ?? name] as const,
  );
  const withOperator = (next: Operator): Condition => {
    const isList = listOperators.has(next);
    const { value } = condition;
    const single = Array.isArray(value) ? (value[0] ?? "") : (value ?? "");
    const many = Array.isArray(value) ? value : value === undefined || value === "" ? [] : [String(value)];
    const sent = valuelessOperators.has(next) ? next : isList ? many : single;
    return { ...condition, operator: next, value: kind === "cohort" || kind === "flag" ? value : sent };
  };
  const isUnfinished = problem === w.keyMissing || problem === w.valueMissing;
  return (
    <div
      class="condition"
      onFocusOut={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null))
          afterPress(() => setLeft(true));
      }}
    >
      <span class="joint">{isFirst ? "" : messages.flag.and}</span>
      {kinds.length > 1 && (
        <Select
          label={w.type}
          isLabelHidden
          value={kind}
          choices={(kinds.includes(kind) ? kinds : [kind, ...kinds]).map(
            (name) => [name, w.types[name as keyof typeof w.types] ?? name] as const,
          )}
          onChange={(next) => onChange(fresh(next, groupTypeIndex))}
        />
      )}
      {kind === "cohort" ? (
        <CohortChoice
          condition={condition}
          choices={choices}
          onChange={onChange}
          withOperator={withOperator}
        />
      ) : kind === "flag" ? (
        <FlagChoice condition={condition} onChange={onChange} />
      ) : (
        <PropertyChoice
          owner={kind}
          condition={condition}
          choices={choices}
          onChange={onChange}
          withOperator={withOperator}
          problem={isUnfinished && !isLeft ? undefined : problem}
        />
      )}
      <Button kind="quiet" icon="trash" label={w.remove} onClick={onRemove} />
    </div>
  );
}

interface ChoiceProps {
  condition: Condition;
  choices: readonly (readonly [Operator, string])[];
  onChange: (condition: Condition) => void;
  withOperator: (operator: Operator) => Condition;
}

function PropertyChoice({
  owner,
  condition,
  choices,
  onChange,
  withOperator,
  problem,
}: ChoiceProps & { owner: PropertyOwner; problem: string | undefined }) {
  const values = usePropertyValues(owner, condition.key);
  const operator = (condition.operator ?? "exact") as Operator;
  const sent = condition.value;
  const isDate = operator.startsWith("is_date");
  return (
    <>
      <PropertyField
        owner={owner}
        groupTypeIndex={condition.group_type_index ?? undefined}
        label={w.property}
        isLabelHidden
        placeholder={w.property}
        class="grow"
        value={String(condition.key)}
        onInput={(key) => onChange({ ...condition, key })}
        error={problem === w.keyMissing ? problem : undefined}
      />
      <Select
        label={w.operator}
        isLabelHidden
        value={operator}
        choices={choices}
        onChange={(next) => onChange(withOperator(next))}
      />
      <div class="grow">
        {valuelessOperators.has(operator) ? null : listOperators.has(operator) ? (
          <TokenField
            label={w.value}
            values={(Array.isArray(sent) ? sent : sent === undefined || sent === "" ? [] : [sent]).map(
              String,
            )}
            suggestions={values}
            onChange={(value) => onChange({ ...condition, value })}
            error={problem === w.keyMissing ? undefined : problem}
          />
        ) : (
          <Combobox
            label={w.value}
            isLabelHidden
            placeholder={isDate ? "2026-01-31, -7d" : w.value}
            value={typeof sent === "string" ? sent : JSON.stringify(sent ?? "").replace(/^"|"$/g, "")}
            options={values.map((value) => ({ value }))}
            onInput={(value) => onChange({ ...condition, value })}
            error={problem === w.keyMissing ? undefined : problem}
          />
        )}
      </div>
    </>
  );
}

function CohortChoice({ condition, choices, onChange, withOperator }: ChoiceProps) {
  const cohorts = useResource<{ results: { id: number; name: string }[] }>(
    `cohorts to choose ${project.value?.id}`,
    (signal) => request(inProject(`cohorts/${queryString({ limit: optionsMax })}`), { signal }),
  );
  const current = String(condition.value ?? "");
  const options = (cohorts.data?.results ?? []).map(({ id, name }) => [String(id), name] as const);
  return (
    <>
      <Select
        label={w.operator}
        isLabelHidden
        value={(condition.operator ?? "in") as Operator}
        choices={choices}
        onChange={(next) => onChange(withOperator(next))}
      />
      <div class="grow">
        <ChoiceField
          label={w.cohort}
          value={current}
          choices={options}
          placeholder={w.choose}
          onChange={(id) => {
            const { cohort_name: _, ...rest } = condition;
            onChange({ ...rest, value: Number(id) });
          }}
        />
      </div>
    </>
  );
}

function FlagChoice({
  condition,
  onChange,
}: {
  condition: Condition;
  onChange: (condition: Condition) => void;
}) {
  const flags = useResource(`flags to choose ${project.value?.id}`, (signal) =>
    readFlags({ limit: optionsMax, active: "true", order: "key" }, signal),
  );
  const current = String(condition.key);
  const all = flags.data?.results ?? [];
  const chosen = all.find(({ id }) => String(id) === current);
  const values = [
    ["true", "true"],
    ["false", "false"],
    ...(chosen?.filters.multivariate?.variants ?? []).map(({ key }) => [key, key] as const),
  ] as const;
  const value = String(condition.value);
  return (
    <>
      <div class="grow">
        <ChoiceField
          label={w.flag}
          value={current}
          choices={all.map(({ id, key }) => [String(id), key] as const)}
          placeholder={w.choose}
          onChange={(key) => onChange({ ...condition, key })}
        />
      </div>
      <span>{w.operators.flag_evaluates_to}</span>
      <Select
        label={w.value}
        isLabelHidden
        value={value}
        choices={values.some(([known]) => known === value) ? values : [...values, [value, value]]}
        onChange={(next) =>
          onChange({ ...condition, value: next === "true" ? true : next === "false" ? false : next })
        }
      />
    </>
  );
}
