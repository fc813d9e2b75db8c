/**
 * Certificates by ACME (RFC 8555): asked for, kept in the data directory, and asked for anew when two thirds of their time
 * are over. The authority looks for an answer on port 80 (http-01); everything else there is sent on to https.
 *
 * Whatever fails is one line in the log, and tried again later: the server goes on without, or with what it has.
 */

import { X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Server } from "bun";
import { firstLine } from "../lib/errors.ts";
import { once } from "../lib/once.ts";
import type { Log } from "../log.ts";

export interface CertificateSettings {
  domains: readonly string[];
  /** Whom the authority may write to; empty: nobody. */
  email: string;
  directoryUrl: string;
  host: string;
  /** Where the authority's question arrives, and the port that clients are sent on to. */
  httpPort: number;
  httpsPort: number;
  /** For its owner alone. */
  folder: string;
}

export interface Certificate {
  key: string;
  /** With those between it and the authority. */
  cert: string;
}

const challengePath = "/.well-known/acme-challenge/";
/** Authorities count failures by the hour. */
const againMs = 3_600_000;
const answerMs = 30_000;
/** Attempts per request, and the seconds between them. */
const requestSettings = { retryMaxAttempts: 2, retryDefaultDelay: 1 };
/** As far ahead as a timer can be set; looked at again then. */
const timerMsMax = 86_400_000;

/** Loaded when a certificate is asked for: few servers have names, and the library takes 16 MB. */
const acme = once(async () => {
  const library = await import("acme-client");
  const { defaults, interceptors } = library.axios;
  defaults.timeout = answerMs;
  // The library waits longer and longer; a later attempt comes anyway, and the log should tell soon.
  Object.assign((defaults as { acmeSettings?: object }).acmeSettings ?? {}, requestSettings);
  for (const handler of interceptors.response.handlers ?? []) {
    const { rejected } = handler;
    handler.rejected = async (error: Unanswered) => {
      try {
        return await rejected?.(error);
      } catch (failure) {
        // Where no answer came at all, the library stumbles over its absence and forgets why.
        throw failure instanceof TypeError ? new Error(reasonOf(error), { cause: error }) : failure;
      }
    };
  }
  return library;
});

/** What the library's requests fail with where no answer comes. */
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

function reasonOf({ code = "", message, config }: Unanswered): string {
  return `${config?.url ?? "the authority"}: ${reasons[code] ?? (message || code || "no answer")}`;
}

export class Certificates {
  private readonly answers = new Map<string, string>();
  private challenges: Server<undefined> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;

  /** @param onCertificate called with a stored one at the start, and with each new one. */
  constructor(
    private readonly settings: CertificateSettings,
    private readonly log: Pick<Log, "info" | "warn">,
    private readonly onCertificate: (certificate: Certificate) => void,
  ) {}

  /** Never throws, and waits for nobody. */
  start(): void {
    const { host, httpPort, folder } = this.settings;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      this.challenges = Bun.serve({
        ...{ hostname: host, port: httpPort, reusePort: false, development: false },
        fetch: (request) => this.answer(new URL(request.url)),
      });
    } catch (error) {
      this.log.warn(
        { error: firstLine(error) },
        `port ${httpPort} cannot be listened on, so no certificate can be had; going on without https`,
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
    const { domains, httpsPort } = this.settings;
    if (pathname.startsWith(challengePath)) {
      const found = this.answers.get(pathname.slice(challengePath.length));
      return new Response(found ?? "Not found.\n", { status: found === undefined ? 404 : 200 });
    }
    // A Host header can say anything: nobody is sent anywhere else.
    const domain = domains.find((one) => one === hostname.toLowerCase()) ?? domains[0]!;
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
    const { domains } = this.settings;
    try {
      const made = await this.order();
      if (this.isStopped) return;
      this.store(made);
      this.onCertificate(made);
      const expiresAt = new Date(new X509Certificate(made.cert).validTo).toISOString();
      this.log.info({ domains, expires_at: expiresAt }, "a certificate was made");
      this.wait(dueInMs(made));
    } catch (error) {
      if (this.isStopped) return;
      this.log.warn(
        { domains, error: firstLine(error) },
        "no certificate could be had; trying again in an hour: does the name lead here, and is port 80 open?",
      );
      this.wait(againMs);
    }
  }

  private async order(): Promise<Certificate> {
    const { domains, email, directoryUrl } = this.settings;
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
      // The authority asks from elsewhere; whether this machine reaches itself by its name says nothing.
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
    const path = join(this.settings.folder, "account.key");
    const { crypto: acmeCrypto } = await acme();
    if (!existsSync(path)) write(path, (await acmeCrypto.createPrivateEcdsaKey()).toString());
    return readFileSync(path, "utf8");
  }

  /** The one of before, when it is for these names and its time is not over. */
  private stored(): Certificate | undefined {
    try {
      const both = readFileSync(this.place, "utf8");
      const from = both.indexOf("-----BEGIN CERTIFICATE-----");
      const found = { key: both.slice(0, from), cert: both.slice(from) };
      const certificate = new X509Certificate(found.cert);
      const isFor = this.settings.domains.every((domain) => certificate.checkHost(domain) !== undefined);
      return isFor && Date.parse(certificate.validTo) > Date.now() ? found : undefined;
    } catch {
      return undefined;
    }
  }

  /** Key and certificate in one file, so that there is never one without the other. */
  private store({ key, cert }: Certificate): void {
    write(this.place, `${key.trim()}\n${cert}`);
  }

  private get place(): string {
    return join(this.settings.folder, "certificate.pem");
  }
}

function write(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Until two thirds of its time are over. */
function dueInMs({ cert }: Certificate): number {
  const { validFrom, validTo } = new X509Certificate(cert);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  return from + ((to - from) * 2) / 3 - Date.now();
}
