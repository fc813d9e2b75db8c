/** How a page looks when there is nothing, not yet, not allowed, not now, or only old data. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, type Failure } from "../lib/api.ts";
import { ago } from "../lib/format.ts";
import { type Resource, useResource } from "../lib/resource.ts";
import { words } from "../words/index.ts";
import { Button } from "./basics.tsx";
import { Icon, type IconName } from "./icons.tsx";

const w = words.frame;

/** One sentence what this is, one button, one line that does the same on the command line. */
export function Empty({
  title,
  children,
  icon = "flag",
  command,
}: {
  title: string;
  children?: ComponentChildren;
  icon?: IconName;
  command?: string;
}) {
  return (
    <div class="state">
      <Icon name={icon} size={32} />
      <p class="state-title">{title}</p>
      {children}
      {command && (
        <p class="help">
          {w.onTheCommandLine}: <code>{command}</code>
        </p>
      )}
    </div>
  );
}

/** Grey rows; they appear after a moment only, so that quick answers do not flicker. */
export function Rows({ count = 6 }: { count?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="unseen">{w.loading}</span>
      {Array.from({ length: count }, (_, place) => (
        <div key={place} aria-hidden="true" />
      ))}
    </div>
  );
}

/** What went wrong, and what can be done. */
export function Trouble({ failure, onRetry }: { failure: Failure; onRetry?: () => void }) {
  const isRefused = failure.status === 403;
  const isMissing = failure.status === 404;
  const title = isRefused ? w.refusedTitle : isMissing ? w.missingTitle : w.failedTitle;
  return (
    <div class="state" role="alert">
      <Icon name="warning" size={32} />
      <p class="state-title">{title}</p>
      <p>{failure.detail}</p>
      {isRefused && <p class="help">{w.refusedHelp}</p>}
      {isMissing && <p class="help">{w.missingHelp}</p>}
      {onRetry && !isRefused && !isMissing && (
        <Button icon="refresh" onClick={onRetry}>
          {w.retry}
        </Button>
      )}
    </div>
  );
}

const reasonMs = 2_000;

/** Why questions cannot be answered now, with how far the store is made again. */
async function readReason(signal: AbortSignal): Promise<string | undefined> {
  const failure = await ask("/_readiness/?role=query", { signal }).then(
    () => undefined,
    (error) => error as Failure,
  );
  const [role] = (failure?.body?.roles ?? []) as { reason: string | null }[];
  return role?.reason ?? undefined;
}

/** The engine is away, or the server: says so, counts down, and tells how old is what is shown. */
export function AwayBar({ failure, readAt }: { failure: Failure; readAt: number }) {
  const why = useResource<string | undefined>(failure.isEngineAway ? "why away" : null, readReason, reasonMs);
  const [left, setLeft] = useState(failure.retryAfterSeconds ?? 3);
  useEffect(() => {
    setLeft(failure.retryAfterSeconds ?? 3);
    const timer = setInterval(() => setLeft((seconds) => Math.max(0, seconds - 1)), 1_000);
    return () => clearInterval(timer);
  }, [failure]);
  return (
    <div class="bar warn" role="status">
      <Icon name="warning" />
      <span>
        {failure.isEngineAway ? w.engineAway : failure.status === 429 ? failure.detail : w.unreachable}{" "}
        {failure.isEngineAway && why.data} {readAt > 0 && w.stale(ago(readAt))}{" "}
        <span aria-hidden="true">{w.tryingAgain(left)}</span>
      </span>
    </div>
  );
}

/** Shows data in whatever state it is. */
export function Content<Data>({
  of: resource,
  children,
  rows,
}: {
  of: Resource<Data>;
  children: (data: Data) => ComponentChildren;
  rows?: number;
}) {
  const { data, failure, readAt, reload } = resource;
  const isAway = failure?.isPassing === true;
  return (
    <>
      {isAway && <AwayBar failure={failure} readAt={data === undefined ? 0 : readAt} />}
      {failure && !isAway && <Trouble failure={failure} onRetry={reload} />}
      {data !== undefined && !(failure && !isAway) && children(data)}
      {data === undefined && (!failure || isAway) && <Rows count={rows ?? 6} />}
    </>
  );
}
