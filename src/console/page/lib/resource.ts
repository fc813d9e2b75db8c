/** Data of a page: old data stays while new data is fetched, and after a failure with its age. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, isAbort, toApiError } from "./api.ts";
import { onTabMessage } from "./tabs.ts";

export interface Resource<Data> {
  data: Data | undefined;
  /** When `data` was read, ms. */
  readAt: number;
  failure: ApiError | undefined;
  isLoading: boolean;
  reload: () => void;
  /** Replaces the data until the next read. */
  replace: (data: Data) => void;
}

interface CacheEntry {
  data: unknown;
  readAt: number;
}

const cachedMax = 60;
/** Cached responses, so that going back renders immediately. */
const cachedEntries = new Map<string, CacheEntry>();

function keep(key: string, data: unknown): CacheEntry {
  const entry = { data, readAt: Date.now() };
  cachedEntries.delete(key);
  cachedEntries.set(key, entry);
  if (cachedEntries.size > cachedMax) cachedEntries.delete(cachedEntries.keys().next().value!);
  return entry;
}

/** Clears the cache when the user or project changes. */
export function clearResourceCache(): void {
  cachedEntries.clear();
}

/** What reads everything on the page again. */
const reloads = new Set<() => void>();

/** Reads everything on the page again, after a change that was not made on the page itself. */
export function reloadResources(): void {
  for (const reload of reloads) reload();
}

/** Data of a page that was hidden longer than this is read again. */
const hiddenMaxMs = 60_000;
const changesApartMs = 200;

/**
 * Reads everything again after changes in another tab, and when a page is shown that was hidden for long; returns a
 * function that ends this.
 */
export function followChanges(): () => void {
  let isOutdated = false;
  let hiddenAt: number | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const reloadIfShown = () => {
    if (document.hidden || !isOutdated) return;
    isOutdated = false;
    reloadResources();
  };
  const onVisibility = () => {
    if (document.hidden) hiddenAt = performance.now();
    else if (hiddenAt !== undefined && performance.now() - hiddenAt > hiddenMaxMs) isOutdated = true;
    reloadIfShown();
  };
  const end = onTabMessage("changed", () => {
    isOutdated = true;
    // Once for several changes in a row.
    clearTimeout(timer);
    timer = setTimeout(reloadIfShown, changesApartMs);
  });
  document.addEventListener("visibilitychange", onVisibility);
  return () => {
    end();
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisibility);
  };
}

/** Read times of the data of each reader on the page, ms. */
const shown = new Map<object, number>();

/** Read time of the oldest data on the page, ms; undefined without data. */
export function oldestShown(): number | undefined {
  return shown.size === 0 ? undefined : Math.min(...shown.values());
}

/** Running reads of the main content. */
let pageReads = 0;
/** By then a page whose file is loaded has started its reads. */
const asideAfterMs = 30;
const asideLookMs = 15;
/** Background reads do not wait longer than this for slow queries. */
const asideWithinMs = 400;

/** Resolves once the main content is loaded, so that the server's single thread handles that first. */
export async function pageLoaded(signal: AbortSignal): Promise<void> {
  const end = performance.now() + asideWithinMs;
  let waitMs = asideAfterMs;
  do {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    waitMs = asideLookMs;
  } while (pageReads > 0 && performance.now() < end && !signal.aborted);
}

/** Reads secondary data, such as the layout's, after the main content or a short delay. */
export function useBackgroundResource<Data>(
  key: string | null,
  read: (signal: AbortSignal) => Promise<Data>,
  everyMs?: number,
  retryMs?: number,
): Resource<Data> {
  return useReading(key, read, everyMs, true, retryMs);
}

/**
 * Reads data and keeps it fresh.
 *
 * @param key  what is read; null reads nothing. A new key starts a new read and aborts the previous one.
 * @param read receives a signal that aborts on unmount.
 * @param everyMs refresh interval while the page is visible.
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
  isQuarantined: boolean,
  retryMs = 3_000,
): Resource<Data> {
  const [, redraw] = useState(0);
  const state = useRef<{ key: string | null; failure: ApiError | undefined; isLoading: boolean }>({
    key: null,
    failure: undefined,
    isLoading: false,
  });
  /** The last response for any key, shown until the next one arrives. */
  const last = useRef<CacheEntry | undefined>(undefined);
  const [round, setRound] = useState(0);
  const reading = useRef(read);
  reading.current = read;

  if (state.current.key !== key) state.current = { key, failure: undefined, isLoading: key !== null };
  const found = key === null ? undefined : (cachedEntries.get(key) ?? last.current);

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
      if (isQuarantined) await pageLoaded(controller.signal);
      if (controller.signal.aborted) return;
      if (!isQuarantined) pageReads += 1;
      try {
        last.current = keep(key, await reading.current(controller.signal));
        state.current = { key, failure: undefined, isLoading: false };
        if (everyMs !== undefined) again(everyMs);
      } catch (error) {
        if (controller.signal.aborted || isAbort(error)) return;
        const failure = toApiError(error);
        state.current = { key, failure, isLoading: false };
        if (failure.isPassing)
          again(failure.retryAfterSeconds === undefined ? retryMs : failure.retryAfterSeconds * 1000);
        else if (everyMs !== undefined) again(everyMs);
      } finally {
        if (!isQuarantined) pageReads -= 1;
      }
      redraw((count) => count + 1);
    };
    void run();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [key, round, everyMs]);

  useEffect(() => {
    if (isQuarantined || found === undefined) return;
    const reader = {};
    shown.set(reader, found.readAt);
    return () => void shown.delete(reader);
  }, [found?.readAt]);

  const reload = useCallback(() => setRound((count) => count + 1), []);
  useEffect(() => {
    reloads.add(reload);
    return () => void reloads.delete(reload);
  }, []);
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
