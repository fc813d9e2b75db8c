/** What differs between two documents, for people who want to know before it is done. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { ExchangeDocument } from "./document.ts";

/** One member that differs; undefined where it is absent. */
interface MemberDifference {
  /** Such as `filters.groups[0].rollout_percentage`. */
  path: string;
  before: Json | undefined;
  after: Json | undefined;
}

/** One flag or cohort that differs. */
export interface ItemDifference {
  kind: "flag" | "cohort";
  /** The key of a flag, the name of a cohort. */
  name: string;
  change: "created" | "updated";
  members: MemberDifference[];
}

/** The items of `after` that are new or different in it; what is only in `before` is not looked at. */
export function differencesBetween(before: ExchangeDocument, after: ExchangeDocument): ItemDifference[] {
  return [
    ...itemDifferences("cohort", before.cohorts, after.cohorts, ({ name }) => name as string),
    ...itemDifferences("flag", before.flags, after.flags, ({ key }) => key as string),
  ];
}

function itemDifferences(
  kind: ItemDifference["kind"],
  before: readonly JsonObject[],
  after: readonly JsonObject[],
  nameOf: (item: JsonObject) => string,
): ItemDifference[] {
  const known = new Map(before.map((item) => [nameOf(item), item]));
  return after.flatMap((item): ItemDifference[] => {
    const name = nameOf(item);
    const old = known.get(name);
    if (old === undefined) return [{ kind, name, change: "created", members: [] }];
    const members = memberDifferences(old, item, "");
    return members.length === 0 ? [] : [{ kind, name, change: "updated", members }];
  });
}

function memberDifferences(
  before: Json | undefined,
  after: Json | undefined,
  path: string,
): MemberDifference[] {
  if (Bun.deepEquals(before, after, true)) return [];
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) =>
      memberDifferences(before[name], after[name], path === "" ? name : `${path}.${name}`),
    );
  }
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return after.flatMap((item, index) => memberDifferences(before[index], item, `${path}[${index}]`));
  }
  return [{ path, before, after }];
}

/** The differences as lines: `+` for what is made, `~` for what changes. */
export function differenceLines(differences: readonly ItemDifference[]): string[] {
  return differences.flatMap(({ kind, name, change, members }) => [
    `${change === "created" ? "+" : "~"} ${kind} ${name}`,
    ...members.map(({ path, before, after }) => `    ${path}: ${shown(before)} -> ${shown(after)}`),
  ]);
}

const shownLengthMax = 300;

function shown(value: Json | undefined): string {
  const text = value === undefined ? "(none)" : JSON.stringify(value);
  return text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text;
}
