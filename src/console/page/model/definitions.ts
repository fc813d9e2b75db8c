/** Names and values for suggestions. If they cannot be loaded, users can still type any value. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { queryString, request } from "../lib/api.ts";
import { useBackgroundResource } from "../lib/resource.ts";
import { inProject, project } from "../lib/session.ts";

const namesMax = 500;

/** Cohort names of the project by id, once loaded: conditions in the activity log contain ids only. */
export const cohortNames = signal<ReadonlyMap<string, string> | undefined>(undefined);

/** Loads cohort names for formatted conditions. */
export function useCohortNames(): void {
  const list = useBackgroundResource<{ results: { id: number; name: string }[] }>(
    `cohort names ${project.value?.id}`,
    (signal) => request(inProject(`cohorts/${queryString({ limit: namesMax })}`), { signal }),
  );
  useEffect(() => {
    cohortNames.value = list.data && new Map(list.data.results.map(({ id, name }) => [String(id), name]));
  }, [list.data]);
}

const known = new Map<string, Promise<string[]>>();

function read(path: string): Promise<string[]> {
  let found = known.get(path);
  if (found === undefined) {
    found = request<{ results: { name: unknown }[] } | { name: unknown }[]>(path).then(
      (answer) =>
        (Array.isArray(answer) ? answer : answer.results).map(({ name }) =>
          typeof name === "string" ? name : JSON.stringify(name),
        ),
      () => {
        known.delete(path);
        return [];
      },
    );
    known.set(path, found);
  }
  return found;
}

function useNames(path: string | undefined): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    let isWanted = path !== undefined;
    if (path === undefined) setNames([]);
    else {
      void read(path).then((found) => {
        if (isWanted) setNames(found);
      });
    }
    return () => {
      isWanted = false;
    };
  }, [path]);
  return names;
}

export function useEventNames(): readonly string[] {
  return useNames(inProject(`event_definitions/${queryString({ limit: namesMax })}`));
}

export type PropertyOwner = "person" | "event" | "group";

export function usePropertyNames(type: PropertyOwner, groupTypeIndex?: number): readonly string[] {
  return useNames(
    inProject(
      `property_definitions/${queryString({ type, limit: namesMax, group_type_index: groupTypeIndex })}`,
    ),
  );
}

/** Recent values of a property. */
export function usePropertyValues(type: PropertyOwner, key: string): readonly string[] {
  const path = type === "person" ? "persons" : type === "event" ? "events" : undefined;
  return useNames(
    path === undefined || key === "" ? undefined : inProject(`${path}/values/${queryString({ key })}`),
  );
}
