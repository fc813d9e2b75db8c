/** Filters of the flag list, as chips; they are in the address. */

import { useMemo } from "preact/hooks";
import { FilterChip } from "../../components/filter-chip.tsx";
import { request } from "../../lib/api.ts";
import { useBackgroundResource } from "../../lib/resource.ts";
import { project } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";
import type { FlagPage } from "../../model/flags.ts";

const w = messages.flags;
const stateValues: Record<string, string> = { on: "true", off: "false", stale: "STALE" };
/** Query parameters that filter the list, besides the search. */
export const filterNames = ["state", "type", "tag", "by", "evaluated"] as const;
/** Orders in addresses of earlier versions. */
const formerOrders: Record<string, string> = {
  newest: "-created_at",
  changed: "-updated_at",
  asked: "-last_called_at",
};
export const defaultOrder = "-created_at";
const dayMs = 86_400_000;

type Query = Record<string, string>;
type SetQuery = (changes: Record<string, string | undefined>) => void;

/** The sort order in an address. */
export const getOrder = (query: Query): string => {
  const order = query.order ?? defaultOrder;
  return formerOrders[order] ?? order;
};

/** The address's filters as parameters of the API. */
export function useFlagFilter(query: Query): Record<string, string | undefined> {
  const evaluated = useMemo(() => getEvaluationTimes(query.evaluated), [query.evaluated]);
  return {
    search: query.search,
    active: stateValues[query.state ?? ""],
    deleted: query.state === "deleted" ? "true" : undefined,
    type: query.type,
    tags: query.tag ? JSON.stringify([query.tag]) : undefined,
    created_by_id: query.by,
    ...evaluated,
    order: getOrder(query),
  };
}

/** "7": evaluated in the last 7 days; "-7": not. */
function getEvaluationTimes(value: string | undefined): Record<string, string> {
  const days = Number(value);
  if (!value || !Number.isInteger(days) || days === 0 || Math.abs(days) > 3_650) return {};
  const time = new Date(Date.now() - Math.abs(days) * dayMs).toISOString();
  return { [days > 0 ? "last_called_after" : "last_called_before"]: time };
}

export function FilterChips({
  query,
  set,
  page,
}: {
  query: Query;
  set: SetQuery;
  /** The first page of flags: their tags can be chosen. */
  page: FlagPage | undefined;
}) {
  const tags = getTags(page, query.tag);
  const chip = (
    name: (typeof filterNames)[number],
    label: string,
    choices: readonly (readonly [string, string])[],
  ) => (
    <FilterChip
      label={label}
      value={query[name] ?? ""}
      choices={choices}
      onChange={(value) => set({ [name]: value })}
    />
  );
  return (
    <>
      {chip("state", w.state, Object.entries(w.states))}
      {chip("type", w.type, Object.entries(w.types))}
      {chip("tag", w.tag, [["", w.anyTag], ...tags.map((tag) => [tag, tag] as const)])}
      <CreatedBy value={query.by ?? ""} onChange={(by) => set({ by })} />
      {chip("evaluated", w.evaluated, w.evaluatedChoices)}
      <span class="narrow-only">
        <FilterChip
          label={w.order}
          value={query.order ?? ""}
          choices={Object.entries(w.orders)}
          onChange={(order) => set({ order })}
        />
      </span>
    </>
  );
}

/** Tags of the flags found so far. */
const knownTags = new Map<number | undefined, Set<string>>();

function getTags(page: FlagPage | undefined, chosen: string | undefined): string[] {
  const known = knownTags.get(project.value?.id) ?? new Set<string>();
  knownTags.set(project.value?.id, known);
  for (const { tags } of page?.results ?? []) for (const tag of tags) known.add(tag);
  if (chosen) known.add(chosen);
  return [...known].sort();
}

function CreatedBy({ value, onChange }: { value: string; onChange: (id: string | undefined) => void }) {
  const members = useBackgroundResource<{
    results: { user: { id: number; first_name: string; email: string } }[];
  }>("members", (signal) => request("/api/organizations/@current/members/?limit=500", { signal }));
  const found = members.data?.results ?? [];
  if (found.length < 2 && value === "") return null;
  return (
    <FilterChip
      label={w.by}
      value={value}
      choices={[
        ["", w.anyUser],
        ...found.map(({ user }) => [String(user.id), user.first_name || user.email] as const),
      ]}
      onChange={onChange}
    />
  );
}
