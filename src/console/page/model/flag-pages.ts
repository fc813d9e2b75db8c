/** Data of the flag list: pages loaded as they scroll into view, and evaluation counts. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, errorMessage } from "../lib/api.ts";
import { useResource } from "../lib/resource.ts";
import { project } from "../lib/session.ts";
import { type Flag, type FlagPage, readFlags } from "./flags.ts";
import { readUsage } from "./usage.ts";

const pageSize = 100;

/** Pages of the list, loaded as they scroll into view. @param onError shows why a later page is missing. */
export function useFlagPages(filter: Record<string, string | undefined>, onError: (text: string) => void) {
  const key = `flags ${project.value?.id} ${JSON.stringify(filter)}`;
  const first = useResource<FlagPage>(key, (signal) => readFlags({ ...filter, limit: pageSize }, signal));
  const more = useRef(new Map<number, Flag[]>());
  const [, redraw] = useState(0);
  const [inView, setInView] = useState<readonly number[]>([]);
  const range = useRef({ from: 0, to: 30 });
  useMemo(() => more.current.clear(), [key]);

  const at = (index: number): Flag | undefined =>
    index < pageSize
      ? first.data?.results[index]
      : more.current.get(Math.floor(index / pageSize))?.[index % pageSize];
  const describeView = () => {
    const ids: number[] = [];
    for (let index = range.current.from; index <= range.current.to; index++) {
      const id = at(index)?.id;
      if (id !== undefined) ids.push(id);
    }
    setInView((now) => (now.join() === ids.join() ? now : ids));
  };
  useEffect(describeView, [first.data]);

  const view = (from: number, last: number) => {
    range.current = { from, to: last };
    for (let page = Math.floor(from / pageSize); page <= Math.floor(last / pageSize); page++) {
      if (page === 0 || more.current.has(page)) continue;
      const pages = more.current;
      pages.set(page, []);
      readFlags({ ...filter, limit: pageSize, offset: page * pageSize }).then(
        ({ results }) => {
          pages.set(page, results);
          describeView();
          redraw((count) => count + 1);
        },
        (error) => {
          pages.delete(page);
          if (!(error instanceof ApiError && error.isSignedOut)) onError(errorMessage(error));
        },
      );
    }
    describeView();
  };
  const put = (flag: Flag) => {
    const swap = (flags: Flag[]) => flags.map((other) => (other.id === flag.id ? flag : other));
    for (const [page, flags] of more.current) more.current.set(page, swap(flags));
    if (first.data) first.replace({ ...first.data, results: swap(first.data.results) });
    redraw((count) => count + 1);
  };
  const reload = () => {
    more.current.clear();
    first.reload();
  };
  return { first, count: first.data?.count, at, view, put, reload, inView };
}

const usageDays = 14;
const usageQuietMs = 150;

/** Evaluations per day of the visible flags, in one request. */
export function useUsage(ids: readonly number[]): ReadonlyMap<number, readonly number[]> {
  const [known, setKnown] = useState<ReadonlyMap<number, readonly number[]>>(new Map());
  useEffect(() => {
    const missing = ids.filter((id) => !known.has(id));
    if (missing.length === 0) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      readUsage(missing, usageDays, controller.signal).then(
        ({ days, results }) => {
          const next = new Map(known);
          for (const { id, values } of results) {
            next.set(
              id,
              days.map((_, position) => values.reduce((sum, { counts }) => sum + (counts[position] ?? 0), 0)),
            );
          }
          setKnown(next);
        },
        () => undefined,
      );
    }, usageQuietMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [ids]);
  return known;
}
