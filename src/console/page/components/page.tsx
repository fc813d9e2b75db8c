/** Page layout: one title, one main action, the content. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { recordVisit } from "../lib/recent.ts";
import { rootPath } from "../lib/router.ts";
import { project } from "../lib/session.ts";
import { messages } from "../messages/index.ts";

/** Longer titles may be cut off; the whole text is then a tooltip. */
const shownLengthMax = 40;

let isFirstPage = true;
const pageTitles: ReadonlySet<string> = new Set(Object.values(messages.frame.pages));

/** Also sets the document title; on navigation the heading gets the focus. */
export function Page({
  title,
  heading,
  action,
  children,
  isWide,
  isForm,
}: {
  title: string;
  heading?: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
  /** Full window width: charts and editors. */
  isWide?: boolean;
  /** Narrow enough to read labels and fields together. */
  isForm?: boolean;
}) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = messages.frame.titleOf(title);
    // Until an object is loaded, the title is that of its list.
    if (project.value && !pageTitles.has(title)) {
      recordVisit({ project: project.value.id, path: location.pathname.slice(rootPath.length + 1), title });
    }
  }, [title]);
  useEffect(() => {
    if (!isFirstPage) head.current?.focus({ preventScroll: true });
    isFirstPage = false;
    scrollTo(0, 0);
  }, []);
  return (
    <div class={isWide ? "page wide" : isForm ? "page form" : "page"}>
      <div class="page-head">
        <h1 ref={head} tabIndex={-1} title={title.length > shownLengthMax ? title : undefined}>
          {heading ?? title}
        </h1>
        {action && <div class="page-action">{action}</div>}
      </div>
      {children}
    </div>
  );
}
