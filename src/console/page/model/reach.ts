/** Whom a flag's conditions reach, counted by the engine while one types. */

import { useEffect, useState } from "preact/hooks";
import { ask, Failure } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { Filters } from "./flags.ts";

interface Population {
  group_type_index: number | null;
  total: number;
  /** Within the rollouts. */
  reached: number;
}

export interface Reach {
  populations: Population[];
  sets: Population[];
  variants: { key: string; reached: number }[];
}

const quietMs = 300;

/** Undefined: not counted yet, null: cannot be counted now. The old figures stay until the new ones are there. */
export function useReach(key: string, filters: Filters): Reach | undefined | null {
  const text = JSON.stringify([
    key,
    filters.groups,
    filters.multivariate,
    filters.aggregation_group_type_index,
  ]);
  const [reach, setReach] = useState<Reach | null>();
  useEffect(() => {
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const body = { key, filters };
      ask<Reach>(inProject("feature_flags/reach/"), { method: "POST", body, signal: controller.signal }).then(
        setReach,
        (error: unknown) => {
          if (error instanceof Failure) setReach(null);
        },
      );
    }, quietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  return reach;
}

/** The persons among all whom a flag is about. */
export function personsOf(reach: Reach): Population {
  return (
    reach.populations.find(({ group_type_index: index }) => index === null) ?? {
      group_type_index: null,
      total: 0,
      reached: 0,
    }
  );
}
