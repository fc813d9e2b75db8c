/** States of a page: empty, loading, forbidden, unavailable, stale. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type ApiError, request } from "../lib/api.ts";
import { ago } from "../lib/format.ts";
import type { LoadFailure } from "../lib/lazy-page.ts";
import { type Resource, useResource } from "../lib/resource.ts";
import { messages } from "../messages/index.ts";
import { Icon, type IconName } from "./icons.tsx";
import { Button } from "./primitives.tsx";

const w = messages.frame;

/** An explanation, a button, and the equivalent command. */
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

/** Placeholder rows; delayed, so that fast responses do not flicker. */
export function Rows({ count = 6 }: { count?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="unseen">{w.loading}</span>
      {Array.from({ length: count }, (_, position) => (
        <div key={position} aria-hidden="true" />
      ))}
    </div>
  );
}

/** A page whose file is loading or failed to load. */
export function NotLoaded({ failure, onRetry }: { failure?: LoadFailure; onRetry: () => void }) {
  if (failure === undefined) return <Rows />;
  const isUpdated = failure === "updated";
  return (
    <div class="state" role="alert">
      <Icon name={isUpdated ? "refresh" : "warning"} size={32} />
      <p class="state-title">{isUpdated ? w.updated : w.loadFailed}</p>
      <p>{isUpdated ? w.updatedHelp : w.loadFailedHelp}</p>
      <Button icon="refresh" onClick={() => (isUpdated ? location.reload() : onRetry())}>
        {isUpdated ? w.reload : w.retry}
      </Button>
    </div>
  );
}

/** An error and the possible action. */
export function ErrorState({ failure, onRetry }: { failure: ApiError; onRetry?: () => void }) {
  const isRejected = failure.status === 403;
  const isMissing = failure.status === 404;
  const title = isRejected ? w.forbiddenTitle : isMissing ? w.missingTitle : w.failedTitle;
  return (
    <div class="state" role="alert">
      <Icon name="warning" size={32} />
      <p class="state-title">{title}</p>
      <p>{isMissing ? w.missingHelp : failure.detail}</p>
      {isRejected && <p class="help">{w.forbiddenHelp}</p>}
      {onRetry && !isRejected && !isMissing && (
        <Button icon="refresh" onClick={onRetry}>
          {w.retry}
        </Button>
      )}
    </div>
  );
}

const reasonMs = 2_000;

/** Why queries fail now, with the progress of a rebuild of the event store. */
async function readReason(signal: AbortSignal): Promise<string | undefined> {
  const failure = await request("/_readiness/?role=query", { signal }).then(
    () => undefined,
    (error) => error as ApiError,
  );
  const [role] = (failure?.body?.roles ?? []) as { reason: string | null }[];
  return role?.reason ?? undefined;
}

/** Offline banner with retry countdown and data age. */
export function OfflineBar({ failure, readAt }: { failure: ApiError; readAt: number }) {
  const why = useResource<string | undefined>(
    failure.isEngineUnavailable ? "why away" : null,
    readReason,
    reasonMs,
  );
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
        {failure.isEngineUnavailable
          ? w.engineUnavailable
          : failure.hasReason
            ? failure.detail
            : w.unreachable}{" "}
        {failure.isEngineUnavailable && why.data} {readAt > 0 && w.stale(ago(readAt))}{" "}
        <span aria-hidden="true">{w.tryingAgain(left)}</span>
      </span>
    </div>
  );
}

/** Renders a resource in any state. */
export function Content<Data>({
  resource,
  children,
  rows,
}: {
  resource: Resource<Data>;
  children: (data: Data) => ComponentChildren;
  rows?: number | undefined;
}) {
  const { data, failure, readAt, reload } = resource;
  const isUnavailable = failure?.isPassing === true;
  return (
    <>
      {isUnavailable && <OfflineBar failure={failure} readAt={data === undefined ? 0 : readAt} />}
      {failure && !isUnavailable && <ErrorState failure={failure} onRetry={reload} />}
      {data !== undefined && !(failure && !isUnavailable) && children(data)}
      {data === undefined && (!failure || isUnavailable) && <Rows count={rows ?? 6} />}
    </>
  );
}

/** A resource's items, one per line. */
export function ResourceList<Item>({
  resource,
  rows,
  empty,
  children,
}: {
  resource: Resource<Item[]> | Resource<{ results: Item[] }>;
  rows?: number | undefined;
  /** Shown instead of an empty list. */
  empty: ComponentChildren;
  /** One `li`. */
  children: (item: Item) => ComponentChildren;
}) {
  return (
    <Content resource={resource as Resource<Item[] | { results: Item[] }>} rows={rows}>
      {(data) => {
        const items = "results" in data ? data.results : data;
        return items.length === 0 ? empty : <ul class="lines">{items.map((item) => children(item))}</ul>;
      }}
    </Content>
  );
}
