/** Who may manage webhooks, and which values they may have (contract: management-api 6.8). */

import { checkAdmin, checkScopes } from "../accounts/api/permissions.ts";
import type { WebhookFormat } from "../accounts/schema.ts";
import { type WebhookEvent, webhookEvents } from "../accounts/webhook-outbox.ts";
import type { Webhook, WebhookFields } from "../accounts/webhooks.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { checkWebhookUrl } from "../operate/webhooks/address.ts";
import { checkTemplate, getFormat } from "../operate/webhooks/format.ts";
import { seesServer } from "../operate/webhooks/sources.ts";
import { type Context, scopeOfEvent } from "./webhook-schemas.ts";

/** Webhooks send data to other places: admins and owners only. @throws {PermissionDeniedError} */
export function assertMayManage({ actor, stores, project }: Context): void {
  if (actor.kind === "user")
    checkAdmin(stores, { user: actor.user, organization: { id: project.organizationId } });
}

/** @throws {HttpError} the key may not read what these events report. @throws {InvalidFieldError} */
function checkEvents({ actor, stores, project }: Context, wanted: readonly string[]): void {
  if (wanted.length === 0)
    throw new InvalidFieldError("events", "invalid_input", "Choose at least one event.");
  if (wanted.includes("backup_failed") && !seesServer(stores.metadata, project)) {
    throw new InvalidFieldError(
      "events",
      "not_permitted",
      "backup_failed is only available in projects of the first organization of this server.",
    );
  }
  if (actor.kind === "user")
    for (const event of wanted) checkScopes(actor.limits, [scopeOfEvent[event as WebhookEvent]]);
}

export interface Sent {
  name?: string;
  url?: string;
  format?: WebhookFormat;
  template?: JsonObject | null;
  events?: WebhookEvent[];
  active?: boolean;
}

/** Members that change together are checked together. @throws {InvalidFieldError} */
export async function checked(
  context: Context,
  sent: Sent,
  before?: Webhook,
): Promise<Partial<WebhookFields>> {
  const isNewUrl = sent.url !== undefined && sent.url !== before?.shownUrl;
  const url = isNewUrl ? await checkWebhookUrl(sent.url!, context.stores.webhookAddresses) : sent.url;
  const format = sent.format ?? before?.format ?? getFormat(url!);
  // Another format than custom drops the template.
  const template =
    sent.template === undefined && format === "custom" ? (before?.template ?? null) : (sent.template ?? null);
  checkTemplate(format, template);
  if (sent.events !== undefined || isNewUrl) checkEvents(context, sent.events ?? before?.events ?? []);
  const events = sent.events && webhookEvents.filter((event) => sent.events!.includes(event));
  return {
    ...(sent.name === undefined ? {} : { name: sent.name.trim() }),
    ...(url === undefined ? {} : { url }),
    ...(events === undefined ? {} : { events }),
    ...(sent.active === undefined ? {} : { active: sent.active }),
    format,
    template,
  };
}
