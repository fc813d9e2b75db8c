/** Names in a query that no event has, with the closest known name. Pure. */

import { closest } from "../lib/closest.ts";
import { getBreakdowns, type InsightDraft } from "./insight.ts";

export interface UnknownName {
  kind: "event" | "property";
  name: string;
  meant: string | undefined;
}

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
