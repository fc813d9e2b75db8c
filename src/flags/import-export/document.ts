/**
 * A project's flags and cohorts as a document for version control and for import elsewhere.
 *
 * IDs are meaningless in another project, so cohorts are referenced by name, flags by key, group types by name. Default
 * values are omitted. Pure.
 */

import { isDeeperThan, isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { flagDefaults } from "../fields.ts";
import { surveyFlagPrefix } from "../rules/types.ts";

/** Version of the document format; higher versions are rejected. */
export const documentVersion = 1;
/** Maximum levels of nesting of an item: deeper than any realistic filter or rule. */
export const nestingMax = 100;

/** What is wrong with an item that is nested too deeply. */
export function nestingIssue(item: Json): string | undefined {
  return isDeeperThan(item, nestingMax) ? `is nested more than ${nestingMax} levels deep` : undefined;
}

/** A flag without IDs; members have the names of the API. */
export interface FlagItem extends JsonObject {
  key: string;
  /** Null when the file has none: a new flag is then off for everyone, and an existing one keeps its filters. */
  filters: JsonObject | null;
}

/** A cohort without IDs. Members of static cohorts are persons, and are not in the document. */
export interface CohortItem extends JsonObject {
  name: string;
}

export interface FlagDocument {
  flagkeep_flags: number;
  /** Names by index, as far as flags refer to them. */
  group_types: Record<string, string>;
  cohorts: CohortItem[];
  flags: FlagItem[];
}

/** A stored flag, with the names of the API. */
export interface StoredFlag {
  id: number;
  key: string;
  fields: JsonObject;
}

interface StoredCohort {
  id: number;
  name: string;
  description: string;
  isStatic: boolean;
  filters: JsonObject;
}

/** The parts of a project that are written to its document. */
export interface ProjectContent {
  flags: readonly StoredFlag[];
  cohorts: readonly StoredCohort[];
  /** Not in the document, but their IDs must not be mistaken for those of other cohorts. */
  deletedCohorts?: readonly Pick<StoredCohort, "id" | "name">[];
  groupTypes: readonly { index: number; name: string }[];
}

/** Serializes a project: cohorts by name, flags by key; survey flags belong to their surveys and are excluded. */
export function writeDocument({
  flags,
  cohorts,
  deletedCohorts = [],
  groupTypes,
}: ProjectContent): FlagDocument {
  const names = {
    cohorts: new Map([
      ...deletedCohorts.map(({ id, name }) => [id, `${name} (deleted)`] as const),
      ...cohorts.map(({ id, name }) => [id, name] as const),
    ]),
    flags: new Map(flags.map(({ id, key }) => [id, key])),
  };
  const written = flags
    .filter(({ key }) => !key.startsWith(surveyFlagPrefix))
    .map(({ key, fields }) => flagItem(key, fields, names));
  const usedTypes = groupTypeIndexesIn(written as unknown as Json);
  return {
    flagkeep_flags: documentVersion,
    group_types: Object.fromEntries(
      groupTypes.filter(({ index }) => usedTypes.has(index)).map(({ index, name }) => [String(index), name]),
    ),
    cohorts: cohorts.map((cohort) => cohortItem(cohort, names)).sort(by(({ name }) => name)),
    flags: written.sort(by(({ key }) => key)),
  };
}

interface Names {
  cohorts: ReadonlyMap<number, string>;
  flags: ReadonlyMap<number, string>;
}

function flagItem(key: string, fields: JsonObject, names: Names): FlagItem {
  const item: FlagItem = { key, filters: {} };
  const { filters, ...others } = item;
  const contexts = getContexts(fields);
  const values = { ...fields, ...contexts };
  const changed = Object.entries(getDefault(contexts)).flatMap(([name, defaultValue]): [string, Json][] => {
    const value = values[name] ?? defaultValue;
    return name === "active" || !Bun.deepEquals(value, defaultValue) ? [[name, value as Json]] : [];
  });
  return {
    ...others,
    ...Object.fromEntries(changed),
    key,
    filters: withNames(withoutNothing((fields.filters ?? filters) as JsonObject), names) as JsonObject,
  };
}

/** A value that is not a list is reported when the flag is read. */
const listed = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);

/** Documents contain the contexts once; under their older name, if it accepts them. */
function getContexts({ tags, evaluation_tags: older, evaluation_contexts: newer }: JsonObject): JsonObject {
  // A flag of another server may have only one of the two names.
  const contexts = listed(newer ?? older);
  const known = new Set(listed(tags));
  const isSubset = contexts.every((tag) => known.has(tag));
  return isSubset ? { evaluation_tags: contexts } : { evaluation_contexts: contexts };
}

/** The default values of a flag's members; of the two names of contexts only the one that an item uses. */
export function getDefault(item: JsonObject): JsonObject {
  const { evaluation_tags, evaluation_contexts, ...others } = flagDefaults;
  const isNewer = Object.hasOwn(item, "evaluation_contexts");
  return { ...others, ...(isNewer ? { evaluation_contexts } : { evaluation_tags }) } as JsonObject;
}

/** Removes null members and empty payloads of filters, which are equivalent to absent ones. */
function withoutNothing(filters: JsonObject): JsonObject {
  const isNothing = (value: Json) => isJsonObject(value) && Object.keys(value).length === 0;
  return Object.fromEntries(
    Object.entries(filters).filter(
      ([name, value]) => value !== null && !(name === "payloads" && isNothing(value)),
    ),
  );
}

function cohortItem({ name, description, isStatic, filters }: StoredCohort, names: Names): CohortItem {
  return {
    name,
    ...(description === "" ? {} : { description }),
    ...(isStatic ? { is_static: true } : { filters: withNames(filters, names) }),
  };
}

/** A copy in which filters refer to cohorts and flags by name instead of ID; unknown IDs stay. */
export function withNames(value: Json, names: Names): Json {
  if (Array.isArray(value)) return value.map((item) => withNames(item, names));
  if (!isJsonObject(value)) return value;
  if (value.type === "cohort") {
    const name = names.cohorts.get(Number(value.value));
    const { value: id, cohort_name: _, ...others } = value;
    return name === undefined ? { ...others, value: id ?? null } : { ...others, cohort: name };
  }
  if (value.type === "flag" && "key" in value) {
    const flag = names.flags.get(Number(value.key));
    const { key, ...others } = value;
    return flag === undefined ? { key: key as Json, ...others } : { ...others, flag };
  }
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withNames(member, names)]));
}

const groupTypeMembers = new Set(["aggregation_group_type_index", "group_type_index"]);

/** The group types that a value refers to. */
export function groupTypeIndexesIn(value: Json): Set<number> {
  const found = new Set<number>();
  const open: Json[] = [value];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (typeof node !== "object" || node === null) continue;
    for (const [name, member] of Object.entries(node)) {
      if (groupTypeMembers.has(name) && typeof member === "number") found.add(member);
      open.push(member as Json);
    }
  }
  return found;
}

/** A copy with every reference to a group type mapped by a function. */
export function mapGroupTypes(value: Json, change: (index: number) => number): Json {
  if (Array.isArray(value)) return value.map((item) => mapGroupTypes(item, change));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) =>
      groupTypeMembers.has(name) && typeof member === "number"
        ? [name, change(member)]
        : [name, mapGroupTypes(member, change)],
    ),
  );
}

function by<Item>(name: (item: Item) => string): (a: Item, b: Item) => number {
  return (a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0);
}
