/** The last deliveries of a webhook. */

import { Dialog } from "../../components/dialog.tsx";
import { Badge, RelativeTime } from "../../components/primitives.tsx";
import { ResourceList } from "../../components/states.tsx";
import { request } from "../../lib/api.ts";
import type { WebhookDelivery as Delivery } from "../../lib/api-types.ts";
import { number } from "../../lib/format.ts";
import { useResource } from "../../lib/resource.ts";
import { inProject } from "../../lib/session.ts";
import { messages } from "../../messages/index.ts";

const w = messages.webhooks;
const shownMax = 50;

export type { Delivery };

const tones = { delivered: "good", failed: "bad", pending: "plain" } as const;

export function WebhookDeliveries({ id, name, onClose }: { id: number; name: string; onClose: () => void }) {
  const found = useResource<{ results: Delivery[] }>(`deliveries of webhook ${id}`, (signal) =>
    request(inProject(`webhooks/${id}/deliveries/?limit=${shownMax}`), { signal }),
  );
  return (
    <Dialog title={w.deliveriesOf(name)} size="large" onClose={onClose}>
      <ResourceList resource={found} rows={4} empty={<p>{w.noDeliveries}</p>}>
        {(delivery) => (
          <li key={delivery.id} class="stack tight">
            <div class="row apart">
              <span>
                {w.eventNames[delivery.event] ?? delivery.event} <b>{delivery.item}</b>{" "}
                <span class="muted">
                  <RelativeTime at={delivery.created_at} />
                </span>
              </span>
              <Badge tone={tones[delivery.state]}>{w.states[delivery.state]}</Badge>
            </div>
            <span class="muted">
              {w.attempts(delivery.attempts)}
              {!delivery.error && delivery.status !== null && ` · ${w.status(delivery.status)}`}
              {delivery.duration_ms !== null && ` · ${number(delivery.duration_ms)} ms`}
              {delivery.error && ` · ${delivery.error}`}
              {delivery.next_attempt_at && delivery.attempts > 0 && (
                <>
                  {` · ${w.nextAttempt} `}
                  <RelativeTime at={delivery.next_attempt_at} />
                </>
              )}
            </span>
          </li>
        )}
      </ResourceList>
    </Dialog>
  );
}
