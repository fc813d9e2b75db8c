/** Names and values to choose from. They only help: where they cannot be had, everything can be written by hand. */

import { useEffect, useState } from "preact/hooks";
import { ask, queryText } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";

const namesMax = 500;
const known = new Map<string, Promise<string[]>>();

function read(path: string): Promise<string[]> {
  let found = known.get(path);
  if (found === undefined) {
    found = ask<{ results: { name: unknown }[] } | { name: unknown }[]>(path).then(
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

/** The names of events that have arrived. */
export function useEventNames(): readonly string[] {
  return useNames(inProject(`event_definitions/${queryText({ limit: namesMax })}`));
}

export type PropertyOwner = "person" | "event" | "group";

/** The names of properties that have been seen. */
export function usePropertyNames(type: PropertyOwner, groupTypeIndex?: number): readonly string[] {
  return useNames(
    inProject(
      `property_definitions/${queryText({ type, limit: namesMax, group_type_index: groupTypeIndex })}`,
    ),
  );
}

/** Values that a property had lately. */
export function usePropertyValues(type: PropertyOwner, key: string): readonly string[] {
  const path = type === "person" ? "persons" : type === "event" ? "events" : undefined;
  return useNames(
    path === undefined || key === "" ? undefined : inProject(`${path}/values/${queryText({ key })}`),
  );
}
