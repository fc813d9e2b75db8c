/**
 * Sends queued deliveries of webhooks. Each webhook has one request at a time, so that a receiver that hangs delays only itself.
 * A crash during a request sends it again: receivers recognize repetitions by `X-Flagkeep-Delivery`.
 */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Metadata } from "../../accounts/metadata.ts";
import { type Attempt, type Delivery, dueDeliveries, recordAttempt } from "../../accounts/webhook-outbox.ts";
import { openTarget, type WebhookTarget } from "../../accounts/webhooks.ts";
import { firstLine } from "../../lib/errors.ts";
import type { SecretCipher } from "../../lib/sealed-text.ts";
import { dayMs, sleep } from "../../lib/time.ts";
import type { Log } from "../../log.ts";
import { version } from "../../version.ts";
import { type AddressRules, ForbiddenAddressError, resolveAllowed } from "./address.ts";
import { readContent } from "./content.ts";
import { formatBody } from "./format.ts";

/*
 * Sends one POST request to an address that was checked before. `fetch` would resolve the name again, follow redirects and use
 * proxies of the environment, each of which could lead elsewhere. Only the status line and the headers of the response are read.
 */

/** Limit for connecting, sending and the head of the response. */
const postTimeoutMs = 10_000;
/** Size of the response's head; the body is not read. */
const headBytesMax = 16 * 1024;

export interface PostOptions {
  /** Addresses of the URL's host, tried in order until one can be connected to. */
  addresses: readonly string[];
  headers: Readonly<Record<string, string>>;
  body: string;
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Trusted certificate authorities in addition to the system's, for tests. */
  ca?: string;
}

export interface PostResponse {
  status: number;
  /** The header `Retry-After` in milliseconds. */
  retryAfterMs: number | undefined;
}

/** @throws {Error} no connection, no response in time, or not an HTTP response. */
export async function post(url: URL, options: PostOptions): Promise<PostResponse> {
  const { timeoutMs = postTimeoutMs, signal } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  const stop = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
  const timedOut = new Error(`No response within ${timeoutMs / 1_000} seconds.`);
  let failure: unknown = new Error("The host has no address.");
  for (const address of options.addresses) {
    try {
      const socket = await open(url, address, options.ca, stop);
      return await exchange(socket, url, options, stop);
    } catch (error) {
      if (timeout.aborted) throw timedOut;
      if (stop.aborted || !(error instanceof ConnectError)) throw error;
      failure = error.cause;
    }
  }
  throw failure;
}

/** The request was not sent, so that another address can be tried. */
class ConnectError extends Error {}

async function open(url: URL, address: string, ca: string | undefined, stop: AbortSignal): Promise<Socket> {
  const isTls = url.protocol === "https:";
  const port = Number(url.port || (isTls ? 443 : 80));
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isName = !host.includes(":") && !/^[\d.]+$/.test(host);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket: Socket = isTls
    ? connectTls({ host: address, port, ca, ...(isName ? { servername: host } : {}) }, resolve)
    : connectTcp({ host: address, port }, resolve);
  const abort = () => reject(stop.reason);
  stop.addEventListener("abort", abort, { once: true });
  socket.on("error", reject);
  try {
    if (stop.aborted) abort();
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw new ConnectError("connection failed", { cause: error });
  } finally {
    stop.removeEventListener("abort", abort);
  }
}

async function exchange(
  socket: Socket,
  url: URL,
  { headers, body }: PostOptions,
  stop: AbortSignal,
): Promise<PostResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<PostResponse>();
  let head = "";
  const abort = () => reject(stop.reason);
  stop.addEventListener("abort", abort, { once: true });
  socket.setEncoding("latin1");
  socket.on("data", (text) => {
    head += text;
    try {
      const response = readHead(head);
      if (response !== undefined) resolve(response);
      else if (head.length > headBytesMax) reject(new Error("The headers of the response are too long."));
    } catch (error) {
      reject(error);
    }
  });
  socket.on("error", reject);
  socket.on("close", () => reject(new Error("The connection was closed without a response.")));
  try {
    if (stop.aborted) abort();
    const all = {
      Host: url.host,
      "Content-Length": String(Buffer.byteLength(body)),
      Connection: "close",
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
    return await promise;
  } finally {
    stop.removeEventListener("abort", abort);
    socket.destroy();
  }
}

/** The final response; undefined while it is incomplete. @throws {Error} */
function readHead(text: string): PostResponse | undefined {
  for (let rest = text; ; ) {
    if (rest.length >= 9 && !/^HTTP\/1\.[01] /.test(rest)) throw new Error("The response is not HTTP.");
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return undefined;
    const status = Number(/^HTTP\/1\.[01] ([1-9]\d\d)(?: |\r\n)/.exec(rest)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) throw new Error("The response has no status.");
    if (status >= 200) {
      const [, seconds] = /\r\nretry-after:[ \t]*(\d{1,9})[ \t]*\r\n/i.exec(rest.slice(0, end + 2)) ?? [];
      return { status, retryAfterMs: seconds === undefined ? undefined : Number(seconds) * 1_000 };
    }
    // Informational responses precede the final one.
    rest = rest.slice(end + 4);
  }
}

/** Requests at the same time, over all webhooks. */
export const concurrentMax = 4;
/** Maximum delay of a delivery that is due. */
const checkIntervalMs = 500;
/** Delay after the result of an attempt could not be stored. */
const unstoredDelayMs = 10_000;
/** Age at which a delivery is not sent any more; retries end before. */
const expiredAfterMs = dayMs + 3_600_000;
/** How long a stop waits for requests under way. */
const stopMs = 2_000;

export interface SenderDeps {
  metadata: Metadata;
  secrets: SecretCipher;
  rules: AddressRules;
  /** URL of the server for links, without a trailing slash. */
  base: () => string;
  /** Changes the metadata, in a cluster for all nodes. */
  together: <Result>(work: () => Result) => Promise<Result>;
  /** Whether this node sends; in a cluster, only one does. */
  isActive: () => boolean;
  log: Pick<Log, "warn">;
  now?: () => Date;
  /** For tests: limit of one request. */
  timeoutMs?: number;
  /** For tests: trusted certificate authorities. */
  ca?: string;
}

export class WebhookSender {
  private timer: ReturnType<typeof setInterval> | undefined;
  private readonly stopping = new AbortController();
  /** Webhooks with a request under way. */
  private readonly running = new Map<number, Promise<void>>();
  /** Deliveries whose result could not be stored, and when to try again. */
  private readonly delayed = new Map<number, number>();
  private readonly now: () => Date;

  constructor(private readonly deps: SenderDeps) {
    this.now = deps.now ?? (() => new Date());
  }

  start(): void {
    this.timer = setInterval(() => this.check(), checkIntervalMs);
    this.timer.unref();
  }

  /** Starts to send what is due, as far as requests may run. */
  check(): void {
    const { metadata, isActive, log } = this.deps;
    if (!isActive() || this.stopping.signal.aborted || this.running.size >= concurrentMax) return;
    try {
      const due = dueDeliveries(metadata.db, this.now(), new Set(this.running.keys()));
      for (const delivery of due) {
        if (this.running.size >= concurrentMax) break;
        if ((this.delayed.get(delivery.id) ?? 0) > this.now().getTime()) continue;
        const work = this.send(delivery).finally(() => this.running.delete(delivery.webhookId));
        this.running.set(delivery.webhookId, work);
      }
    } catch (error) {
      log.warn({ error: firstLine(error) }, "failed to read the deliveries of webhooks");
    }
  }

  /** Resolves once no request is under way. */
  async idle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running.values());
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await Promise.race([this.idle(), sleep(stopMs)]);
    this.stopping.abort(new Error("The server stops."));
    await this.idle();
  }

  /** Sends one delivery and stores the result. Never throws. */
  private async send(delivery: Delivery): Promise<void> {
    const { metadata, together, log } = this.deps;
    const { id, webhookId, event } = delivery;
    try {
      const attempt = await this.attempt(delivery);
      // Interrupted by a stop: the next start sends it.
      if (attempt === undefined) return;
      if (!attempt.isDelivered)
        log.warn(
          { webhook: webhookId, delivery: id, event, status: attempt.status, error: attempt.error },
          "failed to deliver a webhook",
        );
      await together(() => metadata.change((t) => recordAttempt(t, delivery, attempt, this.now())));
      this.delayed.delete(id);
    } catch (error) {
      this.delayed.set(id, this.now().getTime() + unstoredDelayMs);
      if (!metadata.isClosed)
        log.warn(
          { webhook: webhookId, delivery: id, error: firstLine(error) },
          "failed to store the result of a webhook",
        );
    }
  }

  private async attempt(delivery: Delivery): Promise<Attempt | undefined> {
    const started = performance.now();
    const done = (result: Omit<Attempt, "durationMs">): Attempt => ({
      ...result,
      durationMs: performance.now() - started,
    });
    const fail = (error: string, isFinal = false) =>
      done({ isDelivered: false, status: null, error, isFinal });
    // After a long stop, or from a restored backup.
    if (this.now().getTime() > delivery.createdAt.getTime() + expiredAfterMs)
      return fail("The event is older than a day.", true);
    const target = openTarget(this.deps, delivery.webhookId);
    if (target === undefined) return fail("The webhook cannot be decrypted: payload.key has changed.", true);
    if (!target.active) return fail("The webhook was turned off.", true);
    const body = this.body(delivery, target);
    if (body === undefined) return fail("What the event is about was deleted.", true);
    try {
      return done(await this.request(delivery, target, body));
    } catch (error) {
      if (this.stopping.signal.aborted) return undefined;
      return fail(firstLine(error), error instanceof ForbiddenAddressError);
    }
  }

  private body(delivery: Delivery, target: WebhookTarget): string | undefined {
    const { metadata, base } = this.deps;
    const project = metadata.projects.find(target.projectId);
    if (project === undefined || project.archivedAt !== null) return undefined;
    const context = { project: { id: project.id, name: project.name }, base: base() };
    const content = readContent(metadata, delivery, context);
    return content && formatBody(content, target.format, target.template);
  }

  private async request(
    { uuid, event }: Delivery,
    { url: address, secret }: WebhookTarget,
    body: string,
  ): Promise<Omit<Attempt, "durationMs">> {
    const url = new URL(address);
    const { status, retryAfterMs } = await post(url, {
      addresses: await resolveAllowed(url, this.deps.rules),
      headers: {
        "Content-Type": "application/json",
        "User-Agent": `Flagkeep/${version}`,
        "X-Flagkeep-Event": event,
        "X-Flagkeep-Delivery": uuid,
        [signatureHeader]: signature(secret, body, this.now()),
      },
      body,
      timeoutMs: this.deps.timeoutMs,
      ca: this.deps.ca,
      signal: this.stopping.signal,
    });
    if (status >= 200 && status < 300) return { isDelivered: true, status, error: null };
    const reason = status >= 300 && status < 400 ? " Redirects are not followed." : "";
    return {
      isDelivered: false,
      status,
      error: `The receiver answered ${status}.${reason}`,
      // 410 Gone: the receiver unsubscribed.
      isFinal: status === 410,
      retryAfterMs,
    };
  }
}

const signatureHeader = "X-Flagkeep-Signature";

/**
 * The value of the header: `t=<seconds since 1970>,v1=<hex>`, where `v1` is the HMAC-SHA-256 of `<t>.<body>` with the secret of
 * the webhook.
 */
function signature(secret: string, body: string, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1_000);
  const digest = new Bun.CryptoHasher("sha256", secret).update(`${seconds}.${body}`).digest("hex");
  return `t=${seconds},v1=${digest}`;
}
