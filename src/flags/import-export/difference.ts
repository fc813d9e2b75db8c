/** Differences between two documents, for display before an import. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { redactedPayload } from "../rules/types.ts";
import type { FlagDocument } from "./document.ts";

/** One different member; undefined where it is absent. */
interface MemberDifference {
  /** For example `filters.groups[0].rollout_percentage`. */
  path: string;
  before: Json | undefined;
  after: Json | undefined;
}

/** One different flag or cohort. */
export interface ItemDifference {
  kind: "flag" | "cohort";
  /** The key of a flag, the name of a cohort. */
  name: string;
  change: "created" | "updated";
  members: MemberDifference[];
}

/** The items of `after` that are new or changed; items only in `before` are ignored. */
export function differencesBetween(before: FlagDocument, after: FlagDocument): ItemDifference[] {
  return [
    ...itemDifferences("cohort", before.cohorts, after.cohorts, ({ name }) => name as string),
    ...itemDifferences("flag", before.flags, after.flags, ({ key }) => key as string),
  ];
}

function itemDifferences(
  kind: ItemDifference["kind"],
  before: readonly JsonObject[],
  after: readonly JsonObject[],
  getName: (item: JsonObject) => string,
): ItemDifference[] {
  // Cohorts may share a name; they are compared in order.
  const known = Map.groupBy(before, getName);
  return after.flatMap((item): ItemDifference[] => {
    const name = getName(item);
    const old = known.get(name)?.shift();
    if (old === undefined) return [{ kind, name, change: "created", members: [] }];
    const members = memberDifferences(old, item, "");
    return members.length === 0 ? [] : [{ kind, name, change: "updated", members }];
  });
}

/** The members that differ. */
export function memberDifferences(
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

/** Hides secret payloads in differences. */
export function withoutSecrets(...documents: FlagDocument[]): (difference: ItemDifference) => ItemDifference {
  const secret = new Set(
    documents.flatMap(({ flags }) =>
      flags.filter((flag) => flag.has_encrypted_payloads === true).map(({ key }) => key),
    ),
  );
  return (difference) => {
    if (difference.kind !== "flag" || !secret.has(difference.name)) return difference;
    const members = difference.members.map((member) =>
      member.path.startsWith("filters.payloads")
        ? { ...member, before: redactedPayload, after: redactedPayload }
        : member,
    );
    return { ...difference, members };
  };
}

/** The differences as lines: `+` for created items, `~` for changed ones. */
export function differenceLines(
  differences: readonly (Omit<ItemDifference, "kind"> & { kind: string })[],
): string[] {
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
