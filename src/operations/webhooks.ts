/** Webhooks of a project (contract: management-api 6.8). */

import { type Static, Type } from "@sinclair/typebox";
import { findDelivery, listDeliveries, queueDelivery, webhookEvents } from "../accounts/webhook-outbox.ts";
import {
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  rotateWebhookSecret,
  updateWebhook,
  type WebhookFields,
} from "../accounts/webhooks.ts";
import { notFound } from "../http/http-error.ts";
import { int, object, optional, pageOf } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { seesServer } from "../operate/webhooks/sources.ts";
import { type CommandArgument, getAuthor, listOperation, operation, slicePage } from "./operation.ts";
import { assertMayManage, checked, type Sent } from "./webhook-checks.ts";
import {
  active,
  body,
  type Context,
  DeliveryBody,
  type DeliveryRecord,
  deliveryBody,
  events,
  example,
  exampleDelivery,
  exampleWithSecret,
  format,
  name,
  tag,
  template,
  url,
  WebhookBody,
  type WebhookRecord,
  WebhookWithSecret,
} from "./webhook-schemas.ts";

const ofCall = ({ project, actor, now }: Context, id: number) => ({
  projectId: project.id,
  id,
  by: getAuthor(actor),
  now,
});

const idArgument: CommandArgument = {
  name: "id",
  description: "webhook id",
  member: "id",
  lookup: {
    in: () => listAllWebhooks,
    matches: (hook: WebhookRecord, argument) => String(hook.id) === argument,
    value: (hook: WebhookRecord) => hook.id,
    missing: (argument) => `Webhook ${argument} does not exist.`,
  },
};
const parseNames = (text: string) => text.split(",").flatMap((part) => part.trim() || []);
const eventsOption = {
  flags: "--events <name,…>",
  description: `events to report: ${webhookEvents.join(", ")}`,
  parse: parseNames,
};
const templateOption = {
  flags: "--template <json>",
  description: 'JSON of the format custom, such as {"text": "{{text}}"}',
  parse: (text: string) => parseTemplate(text),
};
const urlOption = { flags: "--webhook-url <url>", description: "address that receives POST requests" };

function parseTemplate(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidFieldError("template", "invalid_input", "--template is not valid JSON.");
  }
}

export const listAllWebhooks = listOperation({
  id: "webhooks.list",
  on: "project",
  scope: "webhook:read",
  tag,
  summary: "List webhooks",
  http: { method: "GET", path: "/webhooks", answer: "One page of webhooks." },
  cli: {
    name: "webhooks list",
    description: "List the webhooks of the project.",
    examples: ["webhooks list --json"],
    table: {
      headings: ["id", "name", "url", "format", "state", "events"],
      row: (hook: WebhookRecord) => [
        String(hook.id),
        hook.name,
        hook.url,
        hook.format,
        hook.active ? "on" : "off",
        hook.events.join(", "),
      ],
    },
  },
  input: object({}),
  output: pageOf("WebhookPage", WebhookBody),
  example,
  run: (context: Context, { limit, offset }) => {
    const all = listWebhooks(context.stores.metadata.db, context.project.id);
    return slicePage(all, { limit, offset }, (hook) => body(context, hook));
  },
});

/** Events that a webhook reports only if they are chosen. */
const onRequest: ReadonlySet<string> = new Set(["ingestion_warning", "weekly_summary"]);

const createNewWebhook = operation({
  id: "webhooks.create",
  on: "project",
  scope: "webhook:write",
  tag,
  summary: "Create a webhook",
  description:
    "Events are sent with POST, signed, and retried for a day. Addresses of this machine and of private networks are rejected unless `webhook-allowed-networks` allows them. Admins and owners only.",
  http: {
    method: "POST",
    path: "/webhooks",
    status: 201,
    answer: "The webhook and its secret.",
    makesCredential: true,
  },
  cli: {
    name: "webhooks create",
    description: "Create a webhook and print the secret that signs its requests.",
    examples: [
      "webhooks create --webhook-url https://hooks.example.com/flags",
      "webhooks create --webhook-url https://hooks.slack.com/services/T0/B0/x --events flag_changed,spike",
    ],
    settings: ["webhook-allowed-networks"],
    hasCreator: true,
    options: { url: urlOption, events: eventsOption, template: templateOption },
    done: (hook: Static<typeof WebhookWithSecret>) =>
      `Webhook ${hook.id} created for ${hook.url}.\nSecret, shown only once: ${hook.secret}`,
  },
  input: object({
    url,
    name: optional(name),
    format: optional(format),
    template: optional(template),
    events: optional(events),
    active: optional(active),
  }),
  inputExample: { url: "https://hooks.slack.com/services/T0/B0/abcdefghijklmnop", events: ["flag_changed"] },
  output: WebhookWithSecret,
  example: exampleWithSecret,
  run: async (context: Context, input) => {
    assertMayManage(context);
    const { stores, project, actor, now } = context;
    const standard = webhookEvents.filter(
      (event) => !onRequest.has(event) && (event !== "backup_failed" || seesServer(stores.metadata, project)),
    );
    const fields = await checked(context, { ...input, events: input.events ?? standard } as Sent);
    const target = { projectId: project.id, by: getAuthor(actor), now };
    const complete = { name: "", active: true, ...fields } as WebhookFields;
    const { webhook, secret } = createWebhook(stores, target, complete);
    return { ...body(context, webhook), secret };
  },
});

const getWebhook = operation({
  id: "webhooks.get",
  on: "project",
  scope: "webhook:read",
  tag,
  summary: "Get a webhook",
  http: { method: "GET", path: "/webhooks/:id", answer: "The webhook." },
  input: object({ id: int() }),
  output: WebhookBody,
  example,
  run: (context: Context, { id }) =>
    body(context, findWebhook(context.stores.metadata.db, context.project.id, id)),
});

export const updateOneWebhook = operation({
  id: "webhooks.update",
  on: "project",
  scope: "webhook:write",
  tag,
  summary: "Update a webhook",
  description:
    "Changing `url` or `events` also requires the scopes to read what the events report. The masked `url` of a response changes nothing. Admins and owners only.",
  http: { method: "PATCH", path: "/webhooks/:id", answer: "The webhook." },
  cli: {
    name: "webhooks update",
    description: "Update a webhook.",
    examples: ["webhooks update 1 --events flag_changed,backup_failed"],
    settings: ["webhook-allowed-networks"],
    arguments: [idArgument],
    options: { url: urlOption, events: eventsOption, template: templateOption },
    done: (hook: WebhookRecord) => `Webhook ${hook.id} updated.`,
  },
  input: object({
    id: int(),
    name: optional(name),
    url: optional(url),
    format: optional(format),
    template: optional(template),
    events: optional(events),
    active: optional(active),
  }),
  inputExample: { active: false },
  output: WebhookBody,
  example,
  run: async (context: Context, { id, ...sent }) => {
    assertMayManage(context);
    const before = findWebhook(context.stores.metadata.db, context.project.id, id);
    const fields = await checked(context, sent as Sent, before);
    return body(context, updateWebhook(context.stores, ofCall(context, id), fields));
  },
});

const deleteOneWebhook = operation({
  id: "webhooks.delete",
  on: "project",
  scope: "webhook:write",
  tag,
  summary: "Delete a webhook",
  description: "Also deletes its deliveries. Admins and owners only.",
  http: { method: "DELETE", path: "/webhooks/:id" },
  cli: {
    name: "webhooks delete",
    description: "Delete a webhook and its deliveries.",
    examples: ["webhooks delete 1"],
    arguments: [idArgument],
    result: {
      schema: object({ ...WebhookBody.properties, deleted: Type.Literal(true) }),
      build: ({ found }: { found: { id: WebhookRecord } }) => ({ ...found.id, deleted: true }),
    },
    done: (hook: WebhookRecord) => `Webhook ${hook.id} deleted.`,
  },
  input: object({ id: int() }),
  run: (context: Context, { id }) => {
    assertMayManage(context);
    deleteWebhook(context.stores, ofCall(context, id));
  },
});

const rotateSecret = operation({
  id: "webhooks.rotate_secret",
  on: "project",
  scope: "webhook:write",
  tag,
  summary: "Rotate the secret of a webhook",
  description: "Requests are signed with the new secret from now on. Admins and owners only.",
  http: {
    method: "POST",
    path: "/webhooks/:id/rotate_secret",
    answer: "The webhook and its new secret.",
    makesCredential: true,
  },
  cli: {
    name: "webhooks rotate-secret",
    description: "Replace the secret that signs the requests of a webhook.",
    examples: ["webhooks rotate-secret 1"],
    arguments: [idArgument],
    done: (hook: Static<typeof WebhookWithSecret>) => `New secret, shown only once: ${hook.secret}`,
  },
  input: object({ id: int() }),
  output: WebhookWithSecret,
  example: exampleWithSecret,
  run: (context: Context, { id }) => {
    assertMayManage(context);
    const { webhook, secret } = rotateWebhookSecret(context.stores, ofCall(context, id));
    return { ...body(context, webhook), secret };
  },
});

const testWebhook = operation({
  id: "webhooks.test",
  on: "project",
  scope: "webhook:write",
  tag,
  summary: "Send a test event",
  description: "Queues an event `test`. Poll the delivery for its result. Admins and owners only.",
  http: { method: "POST", path: "/webhooks/:id/test", status: 202, answer: "The queued delivery." },
  cli: {
    name: "webhooks test",
    description: "Send a test event and wait for the result; a server must run.",
    examples: ["webhooks test 1"],
    arguments: [idArgument],
    result: {
      schema: DeliveryBody,
      build: async ({ output, found }: { output: DeliveryRecord; found: { id: WebhookRecord } }, caller) => {
        const end = performance.now() + testWaitMs;
        for (let delivery = output; ; await Bun.sleep(testPollMs)) {
          delivery = (await caller.call(getDelivery, {
            id: found.id.id,
            delivery_id: output.id,
          })) as DeliveryRecord;
          if (delivery.attempts > 0 || performance.now() > end) return delivery;
        }
      },
    },
    done: testSentence,
  },
  input: object({ id: int() }),
  output: DeliveryBody,
  example: { ...exampleDelivery, event: "test" as const, item: "", state: "pending" as const, attempts: 0 },
  run: (context: Context, { id }) => {
    assertMayManage(context);
    const { stores, project, now } = context;
    const hook = findWebhook(stores.metadata.db, project.id, id);
    if (!hook.active)
      throw new InvalidFieldError(null, "webhook_off", "The webhook is turned off. Turn it on first.");
    const queued = stores.metadata.change((t) => queueDelivery(t, id, { event: "test", subject: {}, now }));
    if (queued === undefined)
      throw new InvalidFieldError(null, "limit_reached", "Too many deliveries of this webhook are pending.");
    return deliveryBody(queued);
  },
});

/** Longer than one attempt takes. */
const testWaitMs = 12_000;
const testPollMs = 100;

function testSentence({ state, status, error, attempts }: DeliveryRecord): string {
  if (state === "delivered") return `Delivered: the receiver answered ${status}.`;
  if (attempts === 0) return "Queued, but not sent yet: does the server run?";
  return `Not delivered: ${error}${state === "pending" ? " It is retried." : ""}`;
}

const listWebhookDeliveries = listOperation({
  id: "webhooks.deliveries.list",
  on: "project",
  scope: "webhook:read",
  tag,
  summary: "List the deliveries of a webhook",
  description: "Newest first. All pending ones, and the last 500 finished ones of 30 days.",
  http: { method: "GET", path: "/webhooks/:id/deliveries", answer: "One page of deliveries." },
  cli: {
    name: "webhooks deliveries",
    description: "List the deliveries of a webhook, newest first.",
    examples: ["webhooks deliveries 1 --json"],
    arguments: [idArgument],
    table: {
      headings: ["id", "time", "event", "item", "state", "attempts", "status", "error"],
      row: (delivery: DeliveryRecord) => [
        String(delivery.id),
        delivery.created_at,
        delivery.event,
        delivery.item,
        delivery.state,
        String(delivery.attempts),
        delivery.status === null ? "" : String(delivery.status),
        delivery.error ?? "",
      ],
    },
  },
  input: object({ id: int() }),
  output: pageOf("WebhookDeliveryPage", DeliveryBody),
  example: exampleDelivery,
  run: ({ stores: { metadata }, project }: Context, { id, limit, offset }) => {
    const hook = findWebhook(metadata.db, project.id, id);
    const { deliveries, count } = listDeliveries(metadata.db, hook.id, { limit, offset });
    return { count, results: deliveries.map(deliveryBody) };
  },
});

const getDelivery = operation({
  id: "webhooks.deliveries.get",
  on: "project",
  scope: "webhook:read",
  tag,
  summary: "Get a delivery of a webhook",
  http: { method: "GET", path: "/webhooks/:id/deliveries/:delivery_id", answer: "The delivery." },
  input: object({ id: int(), delivery_id: int() }),
  output: DeliveryBody,
  example: exampleDelivery,
  run: ({ stores: { metadata }, project }: Context, { id, delivery_id }) => {
    const found = findDelivery(metadata.db, findWebhook(metadata.db, project.id, id).id, delivery_id);
    if (found === undefined) throw notFound();
    return deliveryBody(found);
  },
});

/** In the order of the documentation. */
export const webhookOperations = [
  listAllWebhooks,
  createNewWebhook,
  getWebhook,
  updateOneWebhook,
  deleteOneWebhook,
  rotateSecret,
  testWebhook,
  listWebhookDeliveries,
  getDelivery,
];
