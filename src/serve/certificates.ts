/**
 * ACME certificates (RFC 8555): requested, stored in the data directory, and renewed after two thirds of their
 * lifetime. The authority validates over port 80 (http-01); other requests there are redirected to HTTPS.
 *
 * Failures are logged and retried later: the server continues without a certificate or with the stored one.
 */

import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Server } from "bun";
import { once } from "../lib/concurrency.ts";
import { firstLine } from "../lib/errors.ts";
import type { Log } from "../log.ts";

export interface CertificateOptions {
  domains: readonly string[];
  /** Contact e-mail for the ACME account; empty: none. */
  email: string;
  directoryUrl: string;
  host: string;
  /** Receives http-01 challenges. `httpsPort` is the port of the redirects. */
  httpPort: number;
  httpsPort: number;
  /** Accessible only to its owner. */
  folder: string;
}

export interface Certificate {
  key: string;
  /** PEM chain, intermediates included. */
  cert: string;
}

const challengePath = "/.well-known/acme-challenge/";
/** Retry interval; authorities count failed validations per hour. */
const againMs = 3_600_000;
const answerMs = 30_000;
/** Attempts per request, and seconds between them. */
const requestSettings = { retryMaxAttempts: 2, retryDefaultDelay: 1 };
/** Longest single timer; `wait` chains timers for later dates. */
const timerMsMax = 86_400_000;

/** Loaded on demand: few servers use ACME, and the library takes 16 MB. */
const acme = once(async () => {
  const library = await import("acme-client");
  const { defaults, interceptors } = library.axios;
  defaults.timeout = answerMs;
  // The library backs off for long; failing early logs the error soon, and `againMs` retries anyway.
  Object.assign((defaults as { acmeSettings?: object }).acmeSettings ?? {}, requestSettings);
  for (const handler of interceptors.response.handlers ?? []) {
    const { rejected } = handler;
    handler.rejected = async (error: Unanswered) => {
      try {
        return await rejected?.(error);
      } catch (failure) {
        // Without a response the library throws a TypeError that hides the cause.
        throw failure instanceof TypeError ? new Error(getReason(error), { cause: error }) : failure;
      }
    };
  }
  return library;
});

/** Error of the library's requests when no response arrives. */
interface Unanswered extends Error {
  code?: string;
  config?: { url?: string };
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ConnectionRefused: "connection refused",
  ECONNRESET: "the connection was closed",
  ENOTFOUND: "no such host",
  ECONNABORTED: "no answer in time",
  ETIMEDOUT: "no answer in time",
};

function getReason({ code = "", message, config }: Unanswered): string {
  return `${config?.url ?? "the authority"}: ${reasons[code] ?? (message || code || "no answer")}`;
}

export class Certificates {
  private readonly answers = new Map<string, string>();
  private challenges: Server<undefined> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;

  /** @param onCertificate called with a stored certificate at the start, and with each new one. */
  constructor(
    private readonly options: CertificateOptions,
    private readonly log: Pick<Log, "info" | "warn">,
    private readonly onCertificate: (certificate: Certificate) => void,
  ) {}

  /** Never throws and never blocks. */
  start(): void {
    const { host, httpPort, folder } = this.options;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.challenges = Bun.serve({
        hostname: host,
        port: httpPort,
        reusePort: false,
        development: false,
        fetch: (request) => this.answer(new URL(request.url)),
      });
    } catch (error) {
      this.log.warn(
        { error: firstLine(error) },
        `failed to listen on port ${httpPort} for ACME challenges; continuing without HTTPS`,
      );
    }
    const stored = this.stored();
    if (stored !== undefined) this.onCertificate(stored);
    this.wait(stored === undefined ? 0 : dueInMs(stored));
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.timer);
    await this.challenges?.stop(true);
  }

  private answer({ pathname, search, hostname }: URL): Response {
    const { domains, httpsPort } = this.options;
    if (pathname.startsWith(challengePath)) {
      const found = this.answers.get(pathname.slice(challengePath.length));
      return new Response(found ?? "Not found.\n", { status: found === undefined ? 404 : 200 });
    }
    // A Host header is untrusted: never redirect to another host.
    const domain = domains.find((domain) => domain === hostname.toLowerCase()) ?? domains[0]!;
    const port = httpsPort === 443 ? "" : `:${httpsPort}`;
    return new Response(null, {
      status: 308,
      headers: { Location: `https://${domain}${port}${pathname}${search}` },
    });
  }

  private wait(ms: number): void {
    if (this.isStopped || this.challenges === undefined) return;
    const isFar = ms > timerMsMax;
    this.timer = setTimeout(
      () => (isFar ? this.wait(ms - timerMsMax) : void this.renew()),
      isFar ? timerMsMax : Math.max(0, ms),
    );
    this.timer.unref();
  }

  private async renew(): Promise<void> {
    const { domains } = this.options;
    try {
      const created = await this.order();
      if (this.isStopped) return;
      this.store(created);
      this.onCertificate(created);
      const expiresAt = new Date(new X509Certificate(created.cert).validTo).toISOString();
      this.log.info({ domains, expires_at: expiresAt }, "obtained a certificate");
      this.wait(dueInMs(created));
    } catch (error) {
      if (this.isStopped) return;
      this.log.warn(
        { domains, error: firstLine(error) },
        "failed to obtain a certificate; retrying in an hour: check the DNS record and that port 80 is open",
      );
      this.wait(againMs);
    }
  }

  private async order(): Promise<Certificate> {
    const { domains, email, directoryUrl } = this.options;
    const { Client, crypto: acmeCrypto } = await acme();
    const client = new Client({
      directoryUrl,
      accountKey: await this.accountKey(),
      backoffMin: 1_000,
      backoffMax: 10_000,
    });
    const [key, csr] = await acmeCrypto.createCsr({ commonName: domains[0]!, altNames: [...domains] });
    const cert = await client.auto({
      csr,
      ...(email === "" ? {} : { email }),
      termsOfServiceAgreed: true,
      challengePriority: ["http-01"],
      // The authority connects from outside; whether this host reaches itself by its name proves nothing.
      skipChallengeVerification: true,
      challengeCreateFn: async (_, { token }, authorization) => {
        this.answers.set(token, authorization);
      },
      challengeRemoveFn: async (_, { token }) => {
        this.answers.delete(token);
      },
    });
    return { key: key.toString(), cert };
  }

  private async accountKey(): Promise<string> {
    const path = join(this.options.folder, "account.key");
    const { crypto: acmeCrypto } = await acme();
    if (!existsSync(path)) write(path, (await acmeCrypto.createPrivateEcdsaKey()).toString());
    return readFileSync(path, "utf8");
  }

  /** The stored certificate, if it covers these domains and has not expired. */
  private stored(): Certificate | undefined {
    try {
      const both = readFileSync(this.path, "utf8");
      const from = both.indexOf("-----BEGIN CERTIFICATE-----");
      const found = { key: both.slice(0, from), cert: both.slice(from) };
      const certificate = new X509Certificate(found.cert);
      const isFor = this.options.domains.every((domain) => certificate.checkHost(domain) !== undefined);
      return isFor && Date.parse(certificate.validTo) > Date.now() ? found : undefined;
    } catch {
      return undefined;
    }
  }

  /** Key and certificate in one file, so that they are replaced together. */
  private store({ key, cert }: Certificate): void {
    write(this.path, `${key.trim()}\n${cert}`);
  }

  private get path(): string {
    return join(this.options.folder, "certificate.pem");
  }
}

function write(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Milliseconds until two thirds of the lifetime are over. */
function dueInMs({ cert }: Certificate): number {
  const { validFrom, validTo } = new X509Certificate(cert);
  const from = Date.parse(validFrom);
  const to = Date.parse(validTo);
  return from + ((to - from) * 2) / 3 - Date.now();
}
