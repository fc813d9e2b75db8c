/** Messages between the server process and its HTTP workers: JSON lines over the worker's stdin and stdout. */

import type { UsesByKey } from "../../accounts/project-keys.ts";
import type { Config } from "../../config/settings.ts";
import type { OverridesToStore } from "../../flags/evaluation-context/override-writer.ts";
import type { RequestFigures } from "../../operate/request-log.ts";
import type { UnknownKey } from "../../operate/unknown-keys.ts";

/** In the data directory: requests that workers forward to the server process. */
export const forwardSocketName = "http.sock";
/** In the data directory: entries that workers hand to the journal. */
export const journalSocketName = "journal.sock";

const workerSettings = [
  "data-dir",
  "host",
  "public-url",
  "log-level",
  "trusted-proxies",
  "body-limit",
  "api-body-limit",
  "bodies-in-flight",
  "journal-queue",
  "traces-endpoint",
  "traces-sample",
  "https-host",
  "https-port",
  "acme-domain",
] as const;

/** Settings that a worker needs. */
export type WorkerConfig = Pick<Config, (typeof workerSettings)[number]>;

/** The settings for a worker, without the others, which may contain secrets. */
export function pickWorkerConfig(config: Config): WorkerConfig {
  return Object.fromEntries(workerSettings.map((name) => [name, config[name]])) as WorkerConfig;
}

export interface WorkerStart {
  readonly config: WorkerConfig;
  /** 0 picks a free port, which all later workers share. */
  readonly port: number;
  /** Number of workers, which divide the limits among them. */
  readonly workers: number;
  /** SQLite's page cache of the persons store; null: the default. */
  readonly cacheBytes: number | null;
  readonly certificate: Certificate | null;
}

/** PEM. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export type WorkerCommand =
  | { readonly type: "start"; readonly start: WorkerStart }
  /** A new certificate; open connections keep the previous one. */
  | { readonly type: "certificate"; readonly certificate: Certificate }
  /** Hash-key overrides of another worker, while the engine is unavailable. */
  | { readonly type: "overrides"; readonly overrides: OverridesToStore }
  /** Asks for `figures` now. */
  | { readonly type: "report" }
  /** Stop accepting, finish requests in flight and exit. */
  | { readonly type: "stop" };

/** What a worker has counted since its last report; numbers are added to those of the server process. */
export interface WorkerFigures {
  readonly requests: RequestFigures;
  readonly unknownKeys: readonly UnknownKey[];
  readonly keyUses: readonly UsesByKey[];
}

export type WorkerReport =
  | { readonly type: "listening"; readonly port: number }
  /** The worker cannot listen, and exits. */
  | { readonly type: "failed"; readonly message: string }
  /** Sent every second, which shows that the worker does not hang, and on request. */
  | { readonly type: "figures"; readonly figures: WorkerFigures }
  /** Hash-key overrides that cannot be stored now, for the other workers. */
  | { readonly type: "overrides"; readonly overrides: OverridesToStore }
  /** A read has met corruption in an SQLite store. */
  | { readonly type: "corrupt" }
  | { readonly type: "log"; readonly line: string };
