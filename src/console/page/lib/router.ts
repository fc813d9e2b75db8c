/** Page state in the URL: filters, selected tab, query text. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { serverPath } from "./server.ts";
import { project, projects } from "./session.ts";

export const rootPath = `${serverPath}/console`;

/** URL of a page. With several projects it names the current one, so that shared links work. */
export function to(path: string, query: Record<string, string | undefined> = {}): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) values.set(name, value);
  if (projects.value.length > 1 && project.value) values.set("project", String(project.value.id));
  // Legible in a query: none of these ends a value.
  const text = values.toString().replace(/%(?:24|2C|2F|3A|3D)/g, decodeURIComponent);
  return `${rootPath}/${path}${text === "" ? "" : `?${text}`}`;
}

/** Debounce of search input. */
const quietMs = 120;

export interface Address {
  /** Query parameters, without the project. */
  query: Record<string, string>;
  /** Changes some parameters; undefined removes one. Replaces the history entry unless `isStep`. */
  set: (changes: Record<string, string | undefined>, isStep?: boolean) => void;
  go: (path: string, query?: Record<string, string | undefined>) => void;
}

export function useAddress(): Address {
  const location = useLocation();
  const { project: _, ...query } = location.query as Record<string, string>;
  const set = useCallback(
    (changes: Record<string, string | undefined>, isStep = false) => {
      // Read from the window: two changes in one tick see each other.
      const now = Object.fromEntries(new URLSearchParams(window.location.search));
      delete now.project;
      const path = window.location.pathname.slice(rootPath.length + 1);
      location.route(to(path, { ...now, ...changes }), !isStep);
    },
    [location.route],
  );
  return { query, set, go: (path, values) => location.route(to(path, values)) };
}

/** Search input, debounced into the parameter `search`. */
export function useSearch({ query, set }: Address): [text: string, setText: (text: string) => void] {
  const [text, setText] = useState(query.search ?? "");
  const sent = useRef(text);
  useEffect(() => {
    // Changed from outside, for example by a link of the menu.
    if ((query.search ?? "") !== sent.current) setText(query.search ?? "");
  }, [query.search]);
  useEffect(() => {
    const timer = setTimeout(() => {
      sent.current = text;
      if (text !== (query.search ?? "")) set({ search: text || undefined });
    }, quietMs);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}
