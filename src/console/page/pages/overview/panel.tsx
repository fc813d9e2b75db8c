/** A part of Overview that loads and fails on its own. */

import type { ComponentChildren } from "preact";
import { Button } from "../../components/primitives.tsx";
import { Rows } from "../../components/states.tsx";
import type { Resource } from "../../lib/resource.ts";
import { messages } from "../../messages/index.ts";

/** Data that was read before stays while the server cannot be reached; the bar above the page shows its age. */
export function Panel<Data>({
  resource: { data, failure, reload },
  rows = 5,
  children,
}: {
  resource: Resource<Data>;
  rows?: number;
  children: (data: Data) => ComponentChildren;
}) {
  if (data !== undefined && (failure === undefined || failure.isPassing)) return <>{children(data)}</>;
  if (failure === undefined) return <Rows count={rows} />;
  return (
    <div class="panel-failed" role="alert">
      <p>
        {messages.overview.failed} {failure.detail}
      </p>
      <Button icon="refresh" onClick={reload}>
        {messages.frame.retry}
      </Button>
    </div>
  );
}

/** The bar behind a row. @param share 0 to 1 */
export function ShareBar({ share }: { share: number }) {
  return <span class="share" style={{ width: `${share * 100}%` }} aria-hidden="true" />;
}
