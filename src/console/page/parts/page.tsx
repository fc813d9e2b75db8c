/** A page: one title, one main action, its content. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { words } from "../words/index.ts";

let isFirstPage = true;

/** The title is in the document's title, too; on a change of page it gets the focus. */
export function Page({
  title,
  heading,
  action,
  children,
  isWide,
}: {
  title: string;
  heading?: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
  isWide?: boolean;
}) {
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = words.frame.titleOf(title);
  }, [title]);
  useEffect(() => {
    if (!isFirstPage) head.current?.focus({ preventScroll: true });
    isFirstPage = false;
    scrollTo(0, 0);
  }, []);
  return (
    <div class={isWide ? "page wide" : "page"}>
      <div class="page-head">
        <h1 ref={head} tabIndex={-1}>
          {heading ?? title}
        </h1>
        {action && <div class="page-action">{action}</div>}
      </div>
      {children}
    </div>
  );
}
