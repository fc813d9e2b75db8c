/** The event stream of a project, with pausing, counting and reconnection. */

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, errorMessage, isAbort, queryString } from "../lib/api.ts";
import { parseJson } from "../lib/json.ts";
import { inProject } from "../lib/session.ts";
import { readStream } from "../lib/stream.ts";
import type { StoredEvent } from "./events.ts";

const cachedMax = 500;
const againMs = 3_000;
const rateMs = 5_000;
/** Rows are drawn together, at most this often. */
const drawMs = 150;

export interface LiveRow extends StoredEvent {
  arrivedAt: number;
}

export interface Live {
  rows: readonly LiveRow[];
  /** Events that the stream only counted, and those that arrived during a pause. */
  notShown: number;
  behind: number;
  perSecond: number;
  state: "connecting" | "open";
  failure: ApiError | undefined;
}

const nothing: Live = {
  rows: [],
  notShown: 0,
  behind: 0,
  perSecond: 0,
  state: "connecting",
  failure: undefined,
};

/** Reads the stream while the component is mounted. Pausing keeps counting. */
export function useLive(filter: { event?: string; distinct_id?: string }, isPaused: boolean): Live {
  const [live, setLive] = useState<Live>(nothing);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const key = JSON.stringify([filter, inProject("")]);
  useEffect(() => {
    const controller = new AbortController();
    const retained = { rows: [] as LiveRow[], notShown: 0, held: [] as LiveRow[], heldCount: 0 };
    let arrivals: { at: number; count: number }[] = [];
    let state: Live["state"] = "connecting";
    let failure: ApiError | undefined;
    let isDirty = true;
    const count = (number: number) => {
      arrivals.push({ at: performance.now(), count: number });
    };
    const timer = setInterval(() => {
      const since = performance.now() - rateMs;
      const before = arrivals.length;
      arrivals = arrivals.filter(({ at }) => at > since);
      if (!paused.current && retained.held.length > 0) {
        retained.rows = [...retained.held, ...retained.rows].slice(0, cachedMax);
        retained.held = [];
        retained.heldCount = 0;
        isDirty = true;
      }
      if (!isDirty && before === arrivals.length) return;
      isDirty = false;
      const total = arrivals.reduce((sum, arrival) => sum + arrival.count, 0);
      setLive({
        rows: retained.rows,
        notShown: retained.notShown,
        behind: retained.heldCount,
        state,
        failure,
        perSecond: total / (rateMs / 1000),
      });
    }, drawMs);
    const run = async () => {
      while (!controller.signal.aborted) {
        try {
          await readStream(
            inProject(`events/stream/${queryString(filter)}`),
            controller.signal,
            ({ event, data }) => {
              isDirty = true;
              if (event === "skipped") {
                const { count: skipped } = JSON.parse(data) as { count: number };
                retained.notShown += skipped;
                count(skipped);
                return;
              }
              const row = { ...(parseJson(data) as StoredEvent), arrivedAt: Date.now() };
              count(1);
              if (paused.current) {
                retained.held = [row, ...retained.held].slice(0, cachedMax);
                retained.heldCount++;
              } else retained.rows = [row, ...retained.rows].slice(0, cachedMax);
            },
            () => {
              state = "open";
              failure = undefined;
              isDirty = true;
            },
          );
        } catch (error) {
          if (controller.signal.aborted || isAbort(error)) return;
          failure = error instanceof ApiError ? error : new ApiError(0, "unreachable", errorMessage(error));
          if (failure.status >= 400 && failure.status < 500 && !failure.isPassing) {
            isDirty = true;
            return;
          }
        }
        state = "connecting";
        isDirty = true;
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    };
    setLive(nothing);
    void run();
    return () => {
      controller.abort();
      clearInterval(timer);
    };
  }, [key]);
  return live;
}
