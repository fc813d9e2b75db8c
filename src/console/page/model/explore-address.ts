/** Explore's query in the address: short keys, only what differs from the first query. */

import { lazyMessages } from "../messages/later.ts";
import { firstDraft, type InsightDraft, type InsightKind, type Series } from "./insight.ts";

const w = lazyMessages.explore;

/** Members that are plain strings, by their key. */
const keys = {
  b: "breakdown",
  r: "range",
  i: "interval",
  v: "view",
  o: "order",
  s: "shape",
  d: "secondBreakdown",
  f: "formula",
  t: "target",
  u: "returning",
  p: "period",
  n: "cohort",
} as const satisfies Record<string, keyof InsightDraft>;

/** Measures whose name in the address differs. */
const mathNames: Record<string, string> = { dau: "visitors" };

const seriesMax = 20;

function mathToText({ math, math_property: property }: Series): string {
  const name = mathNames[math] ?? math;
  return property ? `${name}:${property}` : name;
}

function mathFromText(text: string): Pick<Series, "math" | "math_property"> {
  const [name = "", ...rest] = text.split(":");
  const math = Object.keys(mathNames).find((key) => mathNames[key] === name) ?? name;
  return { math: math || "total", ...(rest.length > 0 ? { math_property: rest.join(":") } : {}) };
}

/** Only what would end a value or a parameter: the rest stays legible. */
const encode = (value: string) => value.replace(/[%&+#]/g, encodeURIComponent);

/** A query such as `e=$pageview&m=visitors&b=$browser`. */
export function toShortForm(question: InsightDraft): string {
  const parts: [string, string][] = [];
  if (question.kind !== "trends") parts.push(["k", question.kind]);
  const { series } = question;
  if (question.kind !== "retention" && (series.length > 1 || series[0]?.event)) {
    for (const { event } of series) parts.push(["e", event]);
  }
  if (series.some(({ math, math_property: property }) => math !== "total" || property)) {
    for (const node of series) parts.push(["m", mathToText(node)]);
  }
  for (const [key, name] of Object.entries(keys)) {
    const value = question[name];
    if (value !== firstDraft[name]) parts.push([key, value]);
  }
  if (question.compare) parts.push(["c", "1"]);
  if (question.window !== firstDraft.window) parts.push(["w", String(question.window)]);
  if (question.properties.length > 0) parts.push(["q", JSON.stringify(question.properties)]);
  series.forEach(({ properties }, position) => {
    if (properties?.length) parts.push([`q${position}`, JSON.stringify(properties)]);
  });
  return parts.map(([key, value]) => `${key}=${encode(value)}`).join("&");
}

function parseFilters(text: string | null): InsightDraft["properties"] {
  if (text === null) return [];
  const parsed = JSON.parse(text) as unknown;
  if (!Array.isArray(parsed)) throw new SyntaxError("filters are a list");
  return parsed;
}

function fromShortForm(text: string): InsightDraft {
  const values = new URLSearchParams(text);
  const kind = values.get("k") ?? "trends";
  const maths = values.getAll("m").map(mathFromText);
  const events = values.getAll("e").slice(0, seriesMax);
  const count = Math.max(1, events.length, Math.min(maths.length, seriesMax));
  const members = Object.entries(keys).flatMap(([key, name]) => {
    const value = values.get(key);
    return value === null ? [] : [[name, value] as const];
  });
  return {
    ...firstDraft,
    ...Object.fromEntries(members),
    kind: (kind in w.kinds ? kind : "trends") as InsightKind,
    series: Array.from({ length: count }, (_, position) => {
      const properties = parseFilters(values.get(`q${position}`));
      return {
        event: events[position] ?? "",
        ...(maths[position] ?? { math: "total" }),
        ...(properties.length > 0 ? { properties } : {}),
      };
    }),
    properties: parseFilters(values.get("q")),
    compare: values.get("c") === "1",
    window: Number(values.get("w")) || firstDraft.window,
  };
}

/** The former form, JSON in the parameter `question`. */
function fromJson(text: string): InsightDraft {
  const sent = JSON.parse(text) as Partial<InsightDraft>;
  const series = Array.isArray(sent.series) && sent.series.length > 0 ? sent.series : firstDraft.series;
  const kind = sent.kind !== undefined && sent.kind in w.kinds ? sent.kind : "trends";
  return { ...firstDraft, ...sent, kind, series, properties: sent.properties ?? [] };
}

/** The query in an address, in either form. An unreadable one is the first query. */
export function questionFromAddress(query: Record<string, string>): InsightDraft {
  try {
    if (query.question !== undefined) return fromJson(query.question);
    const { q, ...others } = query;
    // Written by hand, an `&` of the short form separates parameters of the address.
    return fromShortForm(
      [q ?? "", ...Object.entries(others).map(([key, value]) => `${key}=${encode(value)}`)].join("&"),
    );
  } catch {
    return firstDraft;
  }
}
