/** Whom a flag's conditions reach, counted by the engine while one types. */

import { useEffect, useState } from "preact/hooks";
import { ask, Failure } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { Filters } from "./flags.ts";

export interface Count {
  affected: number;
  total: number;
}

/** Undefined: not counted yet, null: cannot be counted now. */
export interface Reach {
  sets: (Count | undefined | null)[];
  together: Count | undefined | null;
}

const quietMs = 300;

function count(key: string, filters: Filters, signal: AbortSignal): Promise<Count | null> {
  return ask<Count>(inProject("feature_flags/user_blast_radius/"), {
    method: "POST",
    body: { key, filters, apply_rollout: true },
    signal,
  }).catch((error: unknown) => {
    if (error instanceof Failure) return null;
    throw error;
  });
}

/** Counts each condition set by itself and all together, once the typing rests. */
export function useReach(key: string, filters: Filters): Reach {
  const text = JSON.stringify([key, filters.groups, filters.aggregation_group_type_index]);
  const [found, setFound] = useState<{ text: string; reach: Reach }>();
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const sets = filters.groups ?? [];
      const one = (groups: Filters["groups"]) => count(key, { ...filters, groups }, controller.signal);
      Promise.all([one(sets), ...sets.map((set) => one([set]))]).then(
        ([together, ...each]) => setFound({ text, reach: { together, sets: each } }),
        () => undefined,
      );
    }, quietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  // The old figures stay until the new ones are there.
  return found?.reach ?? { sets: [], together: undefined };
}
