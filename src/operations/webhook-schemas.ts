/** Webhooks and their deliveries in the API (contract: management-api 6.8). */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../accounts/api/user-schemas.ts";
import type { Scope } from "../accounts/route-scopes.ts";
import { deliveryStates, webhookFormats } from "../accounts/schema.ts";
import { userFinder } from "../accounts/users.ts";
import { type Delivery, type WebhookEvent, webhookEvents } from "../accounts/webhook-outbox.ts";
import type { Webhook, WebhookDeps } from "../accounts/webhooks.ts";
import {
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  object,
  record,
  string,
  uuid,
} from "../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../lib/time.ts";
import { type AddressRules, urlLengthMax } from "../operate/webhooks/address.ts";
import type { ProjectContext } from "./operation.ts";

export interface WebhookStores extends WebhookDeps {
  webhookAddresses: AddressRules;
}
export type Context = ProjectContext<WebhookStores>;

export const tag = "Webhooks";
export const events = list(enumeration(webhookEvents), {
  description:
    "Events to report. `backup_failed` only in projects of the server's first organization. Default: all but `ingestion_warning` and `weekly_summary`.",
  minItems: 1,
});
export const format = enumeration(webhookFormats, {
  description:
    "`json`: the event; `slack`, `discord`: a message; `custom`: `template`. Default: by the host of the URL.",
});
export const template = nullable(
  record({
    description:
      "JSON of the format `custom`, with the placeholders `{{text}}`, `{{event}}`, `{{url}}`, `{{project}}`, `{{project_id}}`, `{{created_at}}` and `{{id}}` in strings.",
  }),
);
export const name = string({ description: "Display name.", blank: true, max: 200 });
export const url = string({ description: "Address that receives POST requests.", max: urlLengthMax });
export const active = bool({
  description: "Whether events are sent. Turning it off cancels pending deliveries.",
});

const members = {
  id: int(),
  name,
  url: string({
    description: "The address; parts that may be secret are replaced by `…` and their last characters.",
  }),
  format,
  template,
  events: list(enumeration(webhookEvents)),
  active: bool(),
  skipped_events: int({ description: "Events that were not queued because 10,000 deliveries were pending." }),
  created_by: nullable(UserBody),
  created_at: dateTime(),
  updated_at: dateTime(),
};
export const WebhookBody = named("Webhook", object(members));
const secret = string({
  description:
    "Key of the signatures; only in this response. `X-Flagkeep-Signature` is `t=<seconds>,v1=<hex>`, where `v1` is the HMAC-SHA-256 of `<seconds>.<body>` with this key.",
});
export const WebhookWithSecret = named("WebhookWithSecret", object({ ...members, secret }));
export type WebhookRecord = Static<typeof WebhookBody>;

export const DeliveryBody = named(
  "WebhookDelivery",
  object({
    id: int(),
    uuid: uuid({ description: "Header `X-Flagkeep-Delivery`, the same for each attempt." }),
    event: enumeration([...webhookEvents, "test"]),
    item: string({ description: "What the event is about, such as the key of a flag.", blank: true }),
    state: enumeration(deliveryStates),
    attempts: int(),
    status: nullable(int(), { description: "HTTP status of the last response." }),
    error: nullable(string()),
    duration_ms: nullable(int()),
    created_at: dateTime(),
    last_attempt_at: nullable(dateTime()),
    next_attempt_at: nullable(dateTime()),
  }),
);
export type DeliveryRecord = Static<typeof DeliveryBody>;

export const example = {
  id: 1,
  name: "Releases",
  url: "https://hooks.slack.com/services/T0/B0/…a1b2",
  format: "slack" as const,
  template: null,
  events: ["flag_changed" as const],
  active: true,
  skipped_events: 0,
  created_by: exampleUser,
  created_at: "2026-03-04T16:00:01.007000Z",
  updated_at: "2026-03-04T16:00:01.007000Z",
};
export const exampleWithSecret = { ...example, secret: "whsec_..." };
export const exampleDelivery = {
  id: 7,
  uuid: "0193d1a2-7b1c-7c3e-9f60-ad1e2f3a4b5c",
  event: "flag_changed" as const,
  item: "one-click-pay",
  state: "delivered" as const,
  attempts: 1,
  status: 200,
  error: null,
  duration_ms: 84,
  created_at: "2026-03-04T16:00:01.007000Z",
  last_attempt_at: "2026-03-04T16:00:01.407000Z",
  next_attempt_at: null,
};

/** What a caller must be able to read in order to have it sent elsewhere. */
export const scopeOfEvent: Readonly<Record<WebhookEvent, Scope>> = {
  flag_changed: "feature_flag:read",
  change_request_opened: "feature_flag:read",
  change_request_decided: "feature_flag:read",
  spike: "event:read",
  ingestion_warning: "ingestion_warning:read",
  backup_failed: "project:read",
  weekly_summary: "project:read",
};

export function body({ stores: { metadata } }: Context, hook: Webhook): WebhookRecord {
  return {
    id: hook.id,
    name: hook.name,
    url: hook.shownUrl,
    format: hook.format,
    template: hook.template,
    events: hook.events as WebhookEvent[],
    active: hook.active,
    skipped_events: hook.skipped,
    created_by: userOrNull(userFinder(metadata.db)(hook.createdById)),
    created_at: toApiTime(hook.createdAt),
    updated_at: toApiTime(hook.updatedAt),
  };
}

const userOrNull = (user: Parameters<typeof userBody>[0] | null | undefined) =>
  user ? userBody(user) : null;

export function deliveryBody(delivery: Delivery): DeliveryRecord {
  return {
    id: delivery.id,
    uuid: delivery.uuid,
    event: delivery.event as DeliveryRecord["event"],
    item: delivery.item,
    state: delivery.state,
    attempts: delivery.attempts,
    status: delivery.status,
    error: delivery.error,
    duration_ms: delivery.durationMs,
    created_at: toApiTime(delivery.createdAt),
    last_attempt_at: toApiTimeOrNull(delivery.lastAttemptAt),
    next_attempt_at: toApiTimeOrNull(delivery.nextAttemptAt),
  };
}
