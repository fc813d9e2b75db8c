/** Number of users that a flag's conditions affect, computed while they are edited. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, request } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { Filters } from "./flags.ts";

interface Population {
  group_type_index: number | null;
  total: number;
  /** Within the rollout percentages. */
  reached: number;
}

export interface BlastRadius {
  populations: Population[];
  sets: Population[];
  variants: { key: string; reached: number }[];
}

const quietMs = 300;

/**
 * Undefined: not counted yet; null: cannot be counted now. Old numbers stay until new ones arrive.
 *
 * @param filters undefined counts nothing.
 */
export function useBlastRadius(key: string, filters: Filters | undefined): BlastRadius | undefined | null {
  const text =
    filters &&
    JSON.stringify([key, filters.groups, filters.multivariate, filters.aggregation_group_type_index]);
  const [blastRadius, setBlastRadius] = useState<BlastRadius | null>();
  useEffect(() => {
    if (filters === undefined) return setBlastRadius(undefined);
    const controller = new AbortController();
    const timer = setTimeout(() => {
      const body = { key, filters };
      request<BlastRadius>(inProject("feature_flags/reach/"), {
        method: "POST",
        body,
        signal: controller.signal,
      }).then(setBlastRadius, (error: unknown) => {
        if (error instanceof ApiError) setBlastRadius(null);
      });
    }, quietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text]);
  return blastRadius;
}

/** The population of persons; zeros if the flag targets groups only. */
export function getPersons(blastRadius: BlastRadius): Population {
  return (
    blastRadius.populations.find(({ group_type_index: index }) => index === null) ?? {
      group_type_index: null,
      total: 0,
      reached: 0,
    }
  );
}
