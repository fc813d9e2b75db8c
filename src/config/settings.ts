/** All settings: flag, environment variable, default, unit, help text and validation. */

import { availableParallelism } from "node:os";
import {
  bytes,
  cidrList,
  clickhouse,
  enumeration,
  integer,
  isCron,
  milliseconds,
  parseDomains,
  parseRetention,
  parseSize,
  postgres,
  setting,
  string,
  url,
} from "../lib/setting-types.ts";
import { isFileLocation } from "../lib/store-urls.ts";

/** Most HTTP workers that start by default. */
const workersMax = 8;

/** @returns null for the default; undefined if the value is invalid. */
function parseWorkers(value: string): number | null | undefined {
  if (value === "") return null;
  const count = /^\d{1,2}$/.test(value) ? Number(value) : 0;
  return count >= 1 && count <= 64 ? count : undefined;
}

/** @returns null for the default; undefined if the value is invalid. */
function parseLayout(value: string): "replica" | "rows" | null | undefined {
  if (value === "") return null;
  return value === "replica" || value === "rows" ? value : undefined;
}

/** @returns null for the default; undefined if the value is invalid. */
function parseLoading(value: string): "single" | "partitions" | null | undefined {
  if (value === "") return null;
  return value === "single" || value === "partitions" ? value : undefined;
}

/** Settings of `flagkeep serve` in display order. The key is the flag without `--`. */
export const settings = {
  "data-dir": string("path", {
    default: "./data",
    help: "Data directory.",
    check: (value) => (value === "" ? "the path of a folder" : undefined),
  }),
  host: string("address", {
    default: "127.0.0.1",
    help: "Address to listen on; 0.0.0.0 for all interfaces.",
    check: (value) => (/^[0-9A-Za-z.:_-]+$/.test(value) ? undefined : "an IP address or a host name"),
  }),
  port: integer("number", 0, 65_535, {
    default: "8000",
    help: "Port to listen on; 0 picks a free port.",
  }),
  workers: setting("number", parseWorkers, "a number from 1 to 64, or nothing for the default", {
    default: "",
    help: "HTTP worker processes; 1: the server process handles all requests. Default: CPUs minus two, from 1 to 8, fewer with little memory; 1 in a cluster.",
  }),
  "public-url": url({
    default: "",
    help: "Base URL clients use to reach this server; default: derived from the request.",
  }),
  "log-level": enumeration(["trace", "debug", "info", "warn", "error"], {
    default: "info",
    help: "Minimum log level.",
  }),
  "log-format": enumeration(["text", "json"], {
    default: "text",
    help: "Log format: text, or one JSON object per line.",
  }),
  "body-limit": bytes("1KiB", "1GiB", {
    default: "20MiB",
    help: "Maximum size of a request body, also after decompression; 413 above it.",
  }),
  "api-body-limit": bytes("1KiB", "1GiB", {
    default: "1MiB",
    help: "Maximum body size of flag requests and the management API; file uploads are exempt.",
  }),
  console: enumeration(["on", "off"], {
    default: "on",
    help: "Serve the console at /console/.",
  }),
  mcp: enumeration(["on", "off"], {
    default: "off",
    help: "Serve the Model Context Protocol at /mcp.",
  }),
  "bodies-in-flight": bytes("1MiB", "64GiB", {
    default: "256MiB",
    help: "Maximum bytes of request bodies in memory; further requests wait, then get 503.",
  }),
  "rate-limits": enumeration(["on", "off"], {
    default: "off",
    help: "Limit the request rate of each personal API key.",
  }),
  metrics: enumeration(["local", "open", "off"], {
    default: "local",
    help: "Access to /metrics: local (same machine), open (everyone), off.",
  }),
  "metrics-token": string("token", {
    default: "",
    help: "Bearer token required for /metrics; default: none.",
  }),
  "metrics-token-file": string("path", {
    default: "",
    help: "File with the bearer token for /metrics, read at startup; default: --metrics-token.",
  }),
  "acme-domain": setting("name,…", parseDomains, "names of this server such as flags.example.com", {
    default: "",
    help: "Domain names to serve HTTPS for with certificates from ACME; needs ports 80 and 443. Default: no HTTPS.",
  }),
  "acme-email": string("address", {
    default: "",
    help: "Contact e-mail for the ACME account; default: none.",
    check: (value) => (value === "" || /^[^@\s]+@[^@\s]+$/.test(value) ? undefined : "an e-mail address"),
  }),
  "acme-directory": url({
    default: "https://acme-v02.api.letsencrypt.org/directory",
    help: "ACME directory URL; using it accepts the CA's terms of service.",
  }),
  "acme-http-port": integer("number", 1, 65_535, {
    default: "80",
    help: "Port for ACME HTTP-01 challenges; redirects all other requests to HTTPS.",
  }),
  "https-host": string("address", {
    default: "0.0.0.0",
    help: "Address to listen on for HTTPS and ACME challenges, with --acme-domain.",
    check: (value) => (/^[0-9A-Za-z.:_-]+$/.test(value) ? undefined : "an IP address or a host name"),
  }),
  "https-port": integer("number", 1, 65_535, {
    default: "443",
    help: "HTTPS port, with --acme-domain.",
  }),
  "traces-endpoint": url({
    default: "",
    help: "OTLP/HTTP endpoint of an OpenTelemetry collector, for example http://127.0.0.1:4318; default: no traces.",
  }),
  "traces-sample": integer("percent", 0, 100, {
    default: "100",
    help: "Trace sampling rate in percent; a traceparent header decides for its own request.",
  }),
  "trusted-proxies": cidrList({
    default: "",
    help: "CIDR ranges of reverse proxies whose Forwarded and X-Forwarded-* headers are trusted.",
  }),
  "journal-flush-interval": milliseconds(0, 1_000, {
    default: "0ms",
    help: "Maximum delay of a journal write to group more events into one fsync; 0ms: group only while the disk is busy.",
  }),
  "journal-segment-size": bytes("64KiB", "1GiB", {
    default: "16MiB",
    help: "Size at which a journal segment is sealed and loaded into the event store.",
  }),
  "journal-seal-interval": milliseconds(50, 60_000, {
    default: "500ms",
    help: "Interval at which journal segments are sealed and loaded: the maximum delay until events can be queried.",
  }),
  "journal-queue": bytes("1MiB", "4GiB", {
    default: "128MiB",
    help: "Maximum bytes queued for fsync; 503 above it.",
  }),
  "journal-reserve": bytes("0B", "1GiB", {
    default: "512MiB",
    help: "Free disk space to keep in reserve (at most 5% of the volume); 503 for new events below it.",
  }),
  "archive-max-size": bytes("0B", "100000GiB", {
    default: "4GiB",
    help: "Maximum size of the compressed journal archive, which is pruned once a readable backup covers it; 0 disables it.",
  }),
  memory: setting(
    "size",
    (value) => {
      if (value === "") return null;
      const size = parseSize(value);
      return size !== undefined && size >= 256 * 1024 ** 2 ? size : undefined;
    },
    "a size such as 512MiB or 2GB, of 256MiB or more",
    {
      default: "",
      help: "Total memory budget, divided among the limits that are not set; default: the container's or machine's memory if below 2GiB.",
    },
  ),
  "duckdb-memory-limit": bytes("64MiB", "1024GiB", {
    default: "512MiB",
    help: "Memory limit of the event store.",
  }),
  "duckdb-spill-limit": bytes("64MiB", "100000GiB", {
    default: "16GiB",
    help: "Maximum size of temporary files of queries that exceed the memory limit; at most half of the disk space that is free at the start.",
  }),
  "duckdb-threads": integer("number", 1, 256, {
    default: String(Math.max(1, availableParallelism() - 1)),
    help: "Query threads; default: CPUs minus one.",
  }),
  "property-columns": integer("number", 0, 64, {
    default: "16",
    help: "Maximum number of frequently queried event properties to materialize as columns, in addition to those of web analytics; 0 disables it.",
  }),
  "query-timeout": milliseconds(100, 3_600_000, {
    default: "30s",
    help: "Maximum run time of a query; it is cancelled above it.",
  }),
  "query-result-limit": bytes("1KiB", "1GiB", {
    default: "64MiB",
    help: "Maximum size of a query result; 400 above it.",
  }),
  "events-url": clickhouse({
    default: "",
    help: "ClickHouse database for events, for example clickhouse://user@host:8123/database; default: the embedded DuckDB.",
  }),
  "events-password-file": string("path", {
    default: "",
    help: "File with the ClickHouse password; default: FLAGKEEP_EVENTS_PASSWORD, else the password in the URL.",
  }),
  "postgres-url": postgres({
    default: "",
    help: "PostgreSQL database that the nodes of a cluster share, for example postgres://user@host1,host2/database; requires --events-url.",
  }),
  "postgres-password-file": string("path", {
    default: "",
    help: "File with the PostgreSQL password; default: FLAGKEEP_POSTGRES_PASSWORD, else the password in the URL.",
  }),
  "cluster-persons": setting("layout", parseLayout, "replica or rows, or nothing for the default", {
    default: "",
    help: "How a new cluster stores persons: replica (a copy on every node) or rows (in PostgreSQL only; nodes cache them). Default: replica, or as the cluster does.",
  }),
  "cluster-loading": setting("layout", parseLoading, "single or partitions, or nothing for the default", {
    default: "",
    help: "Which nodes of a new cluster load events: single (one) or partitions (all, each some projects; requires --cluster-persons rows). Default: single, or as the cluster does.",
  }),
  "person-cache": bytes("1MiB", "64GiB", {
    default: "64MiB",
    help: "Memory of a node for cached persons, if the cluster stores persons as rows.",
  }),
  "spike-factor": integer("number", 2, 1_000, {
    default: "10",
    help: "Spike threshold as a multiple of a project's baseline event rate.",
  }),
  "spike-minimum": integer("events/min", 1, 1_000_000_000, {
    default: "1000",
    help: "Minimum event rate of a spike.",
  }),
  "rollback-interval": milliseconds(1_000, 86_400_000, {
    default: "10m",
    help: "Interval at which guardrails and rollback conditions of flags are checked; two violations in a row act.",
  }),
  "spike-webhook": url({ default: "", help: "URL that receives a POST when a spike starts or ends." }),
  "webhook-allowed-networks": cidrList({
    default: "",
    help: "Private addresses and networks that webhooks of projects may call, such as 10.1.0.0/16; default: none.",
  }),
  "events-retention": setting(
    "rules",
    parseRetention,
    "days such as 400d, and for single projects such as 400d,2=30d,3=never",
    {
      default: "",
      help: "Age at which events are deleted, by event time: 400d, or 400d,2=30d with a rule for project 2; default: never.",
    },
  ),
  "backup-destination": string("folder|s3://…", {
    default: "",
    help: "Backup destination: a folder, or s3://bucket/prefix; default: backups in the data directory.",
    check: (value) => (isFileLocation(value) ? undefined : "a folder, or s3://bucket/prefix"),
  }),
  "backup-schedule": string("cron", {
    default: "",
    help: "Cron schedule for automatic backups, for example `0 3 * * *` for every night at 03:00; default: never.",
    check: (value) => (value === "" || isCron(value) ? undefined : "a cron expression such as 0 3 * * *"),
  }),
  "scrub-schedule": string("cron", {
    default: "",
    help: "Cron schedule for scrubs, which verify all checksums on disk, for example `0 4 * * 0` for Sundays at 04:00; default: never.",
    check: (value) => (value === "" || isCron(value) ? undefined : "a cron expression such as 0 4 * * 0"),
  }),
  "backup-keep-last": integer("number", 0, 100_000, {
    default: "3",
    help: "Number of most recent scheduled backups to keep.",
  }),
  "backup-keep-daily": integer("number", 0, 100_000, {
    default: "7",
    help: "Number of daily scheduled backups to keep.",
  }),
  "backup-keep-weekly": integer("number", 0, 100_000, {
    default: "4",
    help: "Number of weekly scheduled backups to keep.",
  }),
  "backup-s3-endpoint": url({
    default: "",
    help: "Endpoint URL of an S3-compatible store; default: AWS_ENDPOINT_URL, else AWS.",
  }),
  "backup-s3-region": string("name", {
    default: "",
    help: "S3 region; default: AWS_REGION, else us-east-1.",
  }),
  "backup-s3-credentials-file": string("path", {
    default: "",
    help: "File with aws_access_key_id and aws_secret_access_key; default: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  }),
  "backup-mode": enumeration(["full", "incremental"], {
    default: "full",
    help: "full: one file per backup; incremental: only chunks that changed since earlier backups.",
  }),
  "backup-recipients": string("age1…,…", {
    default: "",
    help: "age public keys to encrypt backups for; default: those of --backup-key-file, else no encryption.",
    check: (value) =>
      value === "" || /^(?:\s*age1[0-9a-z]+\s*(?:,|$))+$/.test(value)
        ? undefined
        : "public keys of age, age1…",
  }),
  "backup-key-file": string("path", {
    default: "",
    help: "File with the passphrase or age keys to encrypt and read backups.",
  }),
  "shutdown-timeout": milliseconds(500, 600_000, {
    default: "8s",
    help: "Maximum time to load pending events during shutdown; the rest is loaded at the next start.",
  }),
} as const;

export type SettingName = keyof typeof settings;
export type SettingValue<Name extends SettingName> = ReturnType<(typeof settings)[Name]["parse"]>;
export type Config = { readonly [Name in SettingName]: SettingValue<Name> };

/** For example `FLAGKEEP_DATA_DIR` for `data-dir`. */
export function environmentName(name: string): string {
  return `FLAGKEEP_${name.replaceAll("-", "_").toUpperCase()}`;
}

/** Memory for each HTTP worker that starts by default, if memory is limited. */
const bytesPerWorker = 512 * 1024 ** 2;

/**
 * Number of HTTP workers; 1: the server process handles all requests.
 *
 * @param budgetBytes memory budget of the server; null: no limit needed.
 */
export function workerCount(
  config: Pick<Config, "workers" | "postgres-url">,
  budgetBytes: number | null,
  cpus = availableParallelism(),
): number {
  if (config.workers !== null) return config.workers;
  if (config["postgres-url"] !== null) return 1;
  const affordable = budgetBytes === null ? workersMax : Math.floor(budgetBytes / bytesPerWorker);
  return Math.max(1, Math.min(workersMax, cpus - 2, affordable));
}
