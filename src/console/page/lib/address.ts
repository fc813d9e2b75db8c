/** The address is the state of a page: what is filtered, which tab is open, which query is written. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { serverPath } from "./server.ts";
import { project, projects } from "./session.ts";

export const rootPath = `${serverPath}/console`;

/** Address of a page. Where there are several projects it names the one in use, for whoever gets the link. */
export function to(path: string, query: Record<string, string | undefined> = {}): string {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) values.set(name, value);
  if (projects.value.length > 1 && project.value) values.set("project", String(project.value.id));
  const text = values.toString();
  return `${rootPath}/${path}${text === "" ? "" : `?${text}`}`;
}

/** While somebody types, nothing is looked for. */
const quietMs = 120;

export interface Address {
  /** Values in the address, without the project. */
  query: Record<string, string>;
  /** Changes some; undefined takes one away. Replaces the entry of the history unless `isStep`. */
  set: (changes: Record<string, string | undefined>, isStep?: boolean) => void;
  go: (path: string, query?: Record<string, string | undefined>) => void;
}

/** The values in the address, and how to change them. */
export function useAddress(): Address {
  const location = useLocation();
  const { project: _, ...query } = location.query as Record<string, string>;
  const set = useCallback(
    (changes: Record<string, string | undefined>, isStep = false) => {
      // From the window: two changes in one turn see each other.
      const now = Object.fromEntries(new URLSearchParams(window.location.search));
      delete now.project;
      const path = window.location.pathname.slice(rootPath.length + 1);
      location.route(to(path, { ...now, ...changes }), !isStep);
    },
    [location.route],
  );
  return { query, set, go: (path, values) => location.route(to(path, values)) };
}

/** What somebody types to search: it becomes `search` in the address when no more is typed. */
export function useSearch({ query, set }: Address): [text: string, setText: (text: string) => void] {
  const [text, setText] = useState(query.search ?? "");
  const sent = useRef(text);
  useEffect(() => {
    // Changed by something else, such as a link of the menu.
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
