/** Formats an explanation as text: the value, then each step that led to it, one line each. Pure. */

import type { Json } from "../../lib/json/value.ts";
import type {
  ExplainedCondition,
  ExplainedFilter,
  ExplainedRollout,
  ExplanationBody,
} from "../evaluation-context/explanation-shape.ts";

/** Text for the outcome of a condition set, by reason code. */
const outcomeLabels: Record<string, string> = {
  condition_match: "matches",
  no_condition_match: "does not match",
  out_of_rollout_bound: "matches, but is excluded by the rollout",
  no_group_type: "requires a group that is not set",
  failed: "cannot be evaluated",
};

const results: Record<string, string> = {
  match: "yes",
  mismatch: "no ",
  error: "no ",
  failed: "???",
};

/** The explanation as lines of text, without a trailing line break. */
export function formatExplanation(body: ExplanationBody): string {
  const lines = [headline(body)];
  if (body.status === "evaluated") {
    lines.push(`Why: ${body.reason?.description ?? ""}.`, "");
    lines.push(
      body.person === null
        ? `No person has the distinct id ${quoted(body.distinct_id)}; only the given properties apply.`
        : `Person ${body.person.uuid}.`,
    );
    if (body.payload !== null) lines.push(`Payload: ${body.payload}`);
    for (const { id, key, value } of body.dependencies) {
      lines.push(`Depends on ${key ?? `a flag that does not exist (${id})`}: ${valueWord(value)}.`);
    }
    if (body.enrollment !== null) {
      const { key, found, is_decisive } = body.enrollment;
      lines.push(
        `Early access by ${key}: ${is_decisive ? `found ${shown(found)}, which decides` : "not set"}.`,
      );
    }
    if (body.super_condition !== null)
      lines.push(...conditionLines(body.super_condition, "Early access condition"));
    for (const { variant, rollout } of body.holdouts) {
      lines.push(`Holdout ${variant}`, `  ${rolloutLine(rollout)}`);
    }
    for (const condition of body.conditions) {
      lines.push(...conditionLines(condition, `Condition set ${condition.index + 1}`));
    }
    lines.push(...variantLines(body));
  }
  return lines.join("\n");
}

function headline({ flag_key, distinct_id, status, value, failed }: ExplanationBody): string {
  const whom = `for ${quoted(distinct_id)}`;
  switch (status) {
    case "unknown_flag":
      return `Flag ${flag_key} does not exist.`;
    case "inactive":
      return `${flag_key} is disabled: responses do not contain it, which SDKs treat as off.`;
    case "left_out":
      return `${flag_key} is excluded from responses ${whom}.`;
    default:
      if (failed) return `${flag_key} cannot be evaluated ${whom}.`;
      return `${flag_key} is ${valueWord(value)} ${whom}.`;
  }
}

function conditionLines(condition: ExplainedCondition, name: string): string[] {
  const { outcome, identity, filters, rollout } = condition;
  const lines = [`${name} ${outcomeLabels[outcome] ?? outcome}`];
  if (identity === null) return lines;
  lines.push(...filters.map((filter) => `  ${filterLine(filter)}`));
  if (filters.length === 0) lines.push("  yes  no filters: everyone");
  if (rollout !== null) {
    const by = identity.kind === "distinct_id" ? "" : `, by ${identity.kind.replaceAll("_", " ")}`;
    lines.push(`  ${rolloutLine(rollout)}${by}`);
  }
  return lines;
}

function filterLine(filter: ExplainedFilter): string {
  const { type, operator, value, found, source, result, note } = filter;
  const label = results[result] ?? result;
  if (type === "cohort") {
    const relation = operator === "not_in" ? "not in cohort" : "in cohort";
    const membership = found === null ? "unknown" : found === true ? "a member" : "no member";
    return `${label}  ${relation} ${shown(value)}: ${membership}${remark(note)}`;
  }
  if (type === "flag") {
    return `${label}  flag ${filter.key} is ${valueWord(value)}: it is ${valueWord(found)}${remark(note)}`;
  }
  const what = [type === "person" ? "" : type, filter.key ?? "", operator, shown(value)].filter(Boolean);
  const seen = source === "missing" ? "missing" : `found ${shown(found)} (${source})`;
  const why = note ?? (result === "error" ? "values are not comparable" : null);
  return `${label}  ${what.join(" ")}: ${seen}${remark(why)}`;
}

function remark(note: string | null): string {
  return note === null ? "" : `; ${note}`;
}

function rolloutLine({ percentage, hashed, place, is_in }: ExplainedRollout): string {
  const label = is_in ? "yes" : "no ";
  if (percentage === 100) return `${label}  rollout 100%`;
  return `${label}  rollout ${percentage}%: ${quoted(hashed)} hashes to ${percent(place)}`;
}

function variantLines({ variant }: ExplanationBody): string[] {
  if (variant === null) return [];
  const { chosen, is_forced, hashed, place, shares } = variant;
  if (is_forced) return [`Variant ${chosen}, forced by the condition set`];
  return [
    chosen === null ? "No variant: the hash is above all percentages" : `Variant ${chosen}`,
    `  ${quoted(hashed)} hashes to ${percent(place)}`,
    ...shares.map(({ key, from, below }) => {
      return `  ${key === chosen ? "->" : "  "} ${key}: ${percent(from)} to ${percent(below)}`;
    }),
  ];
}

function valueWord(value: Json): string {
  if (value === null) return "unknown";
  if (value === true) return "on";
  return value === false ? "off" : `on, variant ${String(value)}`;
}

function percent(position: number): string {
  return `${(position * 100).toFixed(2)}%`;
}

const shownLengthMax = 200;

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text;
}

function quoted(text: string): string {
  return shown(text);
}
