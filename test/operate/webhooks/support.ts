/** A metadata store with webhooks, a receiver, and a sender with a clock that tests move. */

import { createHmac } from "node:crypto";
import type { Server } from "bun";
import { type NewDelivery, queueWebhooks } from "../../../src/accounts/webhook-outbox.ts";
import { createWebhook, type WebhookFields } from "../../../src/accounts/webhooks.ts";
import { type SenderDeps, WebhookSender } from "../../../src/operate/webhooks/sender.ts";
import { TestServer } from "../../support/management-server.ts";

export interface Received {
  path: string;
  headers: Headers;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
  body: any;
}

/** Receives requests on loopback. */
export class Receiver implements Disposable {
  readonly received: Received[] = [];
  /** Answers each request. */
  answer: (received: Received) => Response | Promise<Response> = () => new Response("ok");
  private readonly server: Server<unknown>;

  constructor() {
    this.server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        const text = await request.text();
        const received = {
          path: new URL(request.url).pathname,
          headers: request.headers,
          text,
          body: JSON.parse(text),
        };
        this.received.push(received);
        return await this.answer(received);
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  [Symbol.dispose](): void {
    void this.server.stop(true);
  }
}

export class SenderSetup implements Disposable {
  readonly server = new TestServer();
  readonly receiver = new Receiver();
  readonly logged: Record<string, unknown>[] = [];
  private senders: WebhookSender[] = [];

  sender(options: Partial<SenderDeps> = {}): WebhookSender {
    const { metadata, deps } = this.server;
    const sender = new WebhookSender({
      metadata,
      secrets: deps.secrets,
      rules: { allowed: ["127.0.0.1"] },
      base: () => "https://flags.example.com",
      together: async (work) => work(),
      isActive: () => true,
      log: { warn: (facts: unknown) => this.logged.push(facts as Record<string, unknown>) },
      now: () => this.server.now,
      ...options,
    } as SenderDeps);
    this.senders.push(sender);
    return sender;
  }

  hook(fields: Partial<WebhookFields> = {}) {
    const { server } = this;
    return createWebhook(
      server.deps,
      { projectId: 1, by: null, now: server.now },
      {
        name: "",
        url: `${this.receiver.url}/hook`,
        format: "json",
        template: null,
        active: true,
        events: ["flag_changed", "change_request_opened", "change_request_decided", "spike"],
        ...fields,
      },
    );
  }

  queue(delivery: Partial<NewDelivery> = {}): void {
    const { server } = this;
    server.metadata.change((t) =>
      queueWebhooks(t, {
        projectId: 1,
        event: "spike",
        subject: { kind: "began", spike: {} },
        now: server.now,
        ...delivery,
      }),
    );
  }

  /** Sends all that is due now. */
  async send(sender: WebhookSender): Promise<void> {
    sender.check();
    await sender.idle();
  }

  pass(seconds: number): void {
    this.server.now = new Date(this.server.now.getTime() + seconds * 1_000);
  }

  /** Deliveries of a webhook, newest first, as the API lists them. */
  async deliveries(id = 1) {
    const { status, body } = await this.server.ask(
      "GET",
      `/api/projects/1/webhooks/${id}/deliveries/?limit=20000`,
    );
    if (status !== 200) throw new Error(`Unexpected answer ${status}.`);
    return body.results;
  }

  [Symbol.dispose](): void {
    this.receiver[Symbol.dispose]();
    this.server[Symbol.dispose]();
  }
}

/** Checks a signature as receivers do. */
export function isSigned({ headers, text }: Pick<Received, "headers" | "text">, secret: string): boolean {
  const [, seconds, digest] =
    /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers.get("x-flagkeep-signature") ?? "") ?? [];
  return digest === createHmac("sha256", secret).update(`${seconds}.${text}`).digest("hex");
}
