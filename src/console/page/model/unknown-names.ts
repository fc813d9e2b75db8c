/** Names in a query that no event has, with the closest known name. Pure. */

import { getBreakdowns, type InsightDraft } from "./insight.ts";

export interface UnknownName {
  kind: "event" | "property";
  name: string;
  meant: string | undefined;
}

/** More edits make a different word. */
const editsMax = 2;

/** Names in a query that are not known. If no names are known, none counts as unknown. */
export function unknownNames(
  question: InsightDraft,
  known: { events: readonly string[]; properties: readonly string[] },
): UnknownName[] {
  const { kind, series, properties, target, returning } = question;
  const events = kind === "retention" ? [target, returning] : series.map(({ event }) => event);
  const keys = [
    ...(kind === "retention" || kind === "lifecycle" ? [] : getBreakdowns(question)),
    ...series.map(({ math_property: property }) => property ?? ""),
    ...[...properties, ...series.flatMap((node) => node.properties ?? [])]
      .filter(({ type }) => type === "event")
      .map(({ key }) => key),
  ];
  const unknown = (wanted: UnknownName["kind"], names: readonly string[], all: readonly string[]) =>
    all.length === 0
      ? []
      : [...new Set(names)]
          .filter((name) => name !== "" && !all.includes(name))
          .map((name) => ({ kind: wanted, name, meant: closest(name, all) }));
  return [...unknown("event", events, known.events), ...unknown("property", keys, known.properties)];
}

/** Replaces a name in a query wherever it is used. */
export function withName(question: InsightDraft, { kind, name }: UnknownName, meant: string): InsightDraft {
  const event = (sent: string) => (kind === "event" && sent === name ? meant : sent);
  const property = (sent: string) => (kind === "property" && sent === name ? meant : sent);
  const filters = (conditions: InsightDraft["properties"]) =>
    conditions.map((condition) =>
      condition.type === "event" ? { ...condition, key: property(condition.key) } : condition,
    );
  return {
    ...question,
    series: question.series.map((node) => ({
      ...node,
      event: event(node.event),
      ...(node.math_property ? { math_property: property(node.math_property) } : {}),
      ...(node.properties ? { properties: filters(node.properties) } : {}),
    })),
    properties: filters(question.properties),
    breakdown: property(question.breakdown),
    secondBreakdown: property(question.secondBreakdown),
    target: event(question.target),
    returning: event(question.returning),
  };
}

/** The known name with the fewest edits; letter case, `$`, `_` and spaces are ignored. */
export function closest(name: string, known: readonly string[]): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[$_\s-]/g, "");
  const wanted = plain(name);
  let best: string | undefined;
  let least = Math.min(editsMax, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of known) {
    const edits = distance(wanted, plain(candidate), least);
    if (edits < least) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

/** Edit distance between two strings, counting a swap of neighbors as one edit; at most `limit`. */
function distance(value: string, other: string, limit: number): number {
  if (Math.abs(value.length - other.length) >= limit) return limit;
  let above: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= value.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = row[j - 1]! + (value[i - 1] === other[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && value[i - 1] === other[j - 2] && value[i - 2] === other[j - 1];
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1, isSwap ? above[j - 2]! + 1 : limit));
    }
    above = row;
    row = next;
  }
  return Math.min(limit, row[other.length]!);
}
