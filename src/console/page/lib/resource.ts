/** Data that a page shows: the old stays while the new is fetched, and after a failure with its age. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asFailure, type Failure, isAbort } from "./api.ts";

export interface Resource<Data> {
  data: Data | undefined;
  /** When `data` was read, ms. */
  readAt: number;
  failure: Failure | undefined;
  isLoading: boolean;
  reload: () => void;
  /** Puts a changed form in place, until the next read. */
  replace: (data: Data) => void;
}

interface Kept {
  data: unknown;
  readAt: number;
}

const keptMax = 60;
/** The last answers, so that going back shows at once what was there. */
const kept = new Map<string, Kept>();

function keep(key: string, data: unknown): Kept {
  const entry = { data, readAt: Date.now() };
  kept.delete(key);
  kept.set(key, entry);
  if (kept.size > keptMax) kept.delete(kept.keys().next().value!);
  return entry;
}

/** Forgets every answer: another person, another project. */
export function forgetAll(): void {
  kept.clear();
}

/** How many reads of what a page is about are under way. */
let pageReads = 0;
/** When a page has begun to read, its file is here. */
const asideAfterMs = 30;
const asideLookMs = 15;
/** What is beside the page does not wait for a long question. */
const asideWithinMs = 400;

/** Resolves when what the page is about has come, so that a server's one thread answers that first. */
export async function pageHasCome(signal: AbortSignal): Promise<void> {
  const end = performance.now() + asideWithinMs;
  let waitMs = asideAfterMs;
  do {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    waitMs = asideLookMs;
  } while (pageReads > 0 && performance.now() < end && !signal.aborted);
}

/** Reads what is beside the page's content, as in its frame: behind that, as far as it comes soon. */
export function useAside<Data>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<Data>,
  everyMs?: number,
): Resource<Data> {
  return useReading(key, read, everyMs, true);
}

/**
 * Reads something and keeps it fresh.
 *
 * @param key  what is read; null reads nothing. A new key reads anew and ends the request before.
 * @param read gets a signal that ends when the page goes away.
 * @param everyMs how often to read again while the page is visible.
 */
export function useResource<Data>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<Data>,
  everyMs?: number,
): Resource<Data> {
  return useReading(key, read, everyMs, false);
}

function useReading<Data>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<Data>,
  everyMs: number | undefined,
  isAside: boolean,
): Resource<Data> {
  const [, redraw] = useState(0);
  const state = useRef<{ key: string | null; failure: Failure | undefined; isLoading: boolean }>({
    key: null,
    failure: undefined,
    isLoading: false,
  });
  /** The last answer of whatever key, shown while the next one is on its way. */
  const last = useRef<Kept | undefined>(undefined);
  const [round, setRound] = useState(0);
  const reading = useRef(read);
  reading.current = read;

  if (state.current.key !== key) state.current = { key, failure: undefined, isLoading: key !== null };
  const found = key === null ? undefined : (kept.get(key) ?? last.current);

  useEffect(() => {
    if (key === null) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (afterMs: number) => {
      timer = setTimeout(() => {
        if (document.hidden) again(afterMs);
        else run();
      }, afterMs);
    };
    const run = async () => {
      state.current = { ...state.current, isLoading: true };
      redraw((count) => count + 1);
      if (isAside) await pageHasCome(controller.signal);
      if (controller.signal.aborted) return;
      if (!isAside) pageReads += 1;
      try {
        last.current = keep(key, await reading.current(controller.signal));
        state.current = { key, failure: undefined, isLoading: false };
        if (everyMs !== undefined) again(everyMs);
      } catch (error) {
        if (controller.signal.aborted || isAbort(error)) return;
        const failure = asFailure(error);
        state.current = { key, failure, isLoading: false };
        if (failure.isPassing) again((failure.retryAfterSeconds ?? 3) * 1000);
        else if (everyMs !== undefined) again(everyMs);
      } finally {
        if (!isAside) pageReads -= 1;
      }
      redraw((count) => count + 1);
    };
    void run();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key, round, everyMs]);

  const reload = useCallback(() => setRound((count) => count + 1), []);
  return {
    data: found?.data as Data | undefined,
    readAt: found?.readAt ?? 0,
    failure: state.current.failure,
    isLoading: state.current.isLoading,
    reload,
    replace: (data) => {
      if (key === null) return;
      last.current = keep(key, data);
      redraw((count) => count + 1);
    },
  };
}
