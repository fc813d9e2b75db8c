/** Every setting, once: flag, environment variable, default, unit, help text and check. */

import { availableParallelism } from "node:os";
import { isPlaceForFiles } from "../lib/s3-address.ts";
import {
  bytes,
  choice,
  clickhouse,
  integer,
  isCron,
  milliseconds,
  networks,
  parseDomains,
  parseRetention,
  parseSize,
  postgres,
  setting,
  text,
  url,
} from "../lib/setting-kinds.ts";

/** The settings of `flagkeep serve`, in the order in which they are shown. The key is the flag without `--`. */
export const settings = {
  "data-dir": text("path", {
    default: "./data",
    help: "Folder that holds everything Flagkeep keeps.",
    check: (value) => (value === "" ? "the path of a folder" : undefined),
  }),
  host: text("address", {
    default: "127.0.0.1",
    help: "Address to listen on; 0.0.0.0 for all.",
    check: (value) => (/^[0-9A-Za-z.:_-]+$/.test(value) ? undefined : "an IP address or a host name"),
  }),
  port: integer("number", 0, 65_535, {
    default: "8000",
    help: "Port to listen on; 0 lets the system choose.",
  }),
  "public-url": url({
    default: "",
    help: "Address under which clients reach this server; default: the one they asked.",
  }),
  "log-level": choice(["trace", "debug", "info", "warn", "error"], {
    default: "info",
    help: "Least severe log lines to write.",
  }),
  "log-format": choice(["text", "json"], {
    default: "text",
    help: "Log lines for people or one JSON object each.",
  }),
  "body-limit": bytes("1KiB", "1GiB", {
    default: "20MiB",
    help: "Largest request body, also after decompression; larger ones get 413.",
  }),
  "api-body-limit": bytes("1KiB", "1GiB", {
    default: "1MiB",
    help: "Largest body of flag requests and of the management API, uploads of files aside.",
  }),
  console: choice(["on", "off"], {
    default: "on",
    help: "Whether the browser page is served at /console/.",
  }),
  mcp: choice(["on", "off"], {
    default: "off",
    help: "Whether programs that speak the Model Context Protocol are served at /mcp.",
  }),
  "bodies-in-flight": bytes("1MiB", "64GiB", {
    default: "256MiB",
    help: "Bytes of request bodies held at once; further ones wait, then get 503.",
  }),
  "rate-limits": choice(["on", "off"], {
    default: "off",
    help: "Whether the management API limits the requests of each personal key.",
  }),
  metrics: choice(["local", "open", "off"], {
    default: "local",
    help: "Who may read /metrics: clients on the same machine, everybody, nobody.",
  }),
  "metrics-token": text("token", {
    default: "",
    help: "Asked for as a Bearer token at /metrics; default: none.",
  }),
  "metrics-token-file": text("path", {
    default: "",
    help: "File with the token for /metrics, read at the start; default: --metrics-token.",
  }),
  "acme-domain": setting("name,…", parseDomains, "names of this server such as flags.example.com", {
    default: "",
    help: "Names to get and renew a certificate for, and to serve https under; needs ports 80 and 443. Default: no https.",
  }),
  "acme-email": text("address", {
    default: "",
    help: "Whom the authority may write to about certificates; default: nobody.",
    check: (value) => (value === "" || /^[^@\s]+@[^@\s]+$/.test(value) ? undefined : "an e-mail address"),
  }),
  "acme-directory": url({
    default: "https://acme-v02.api.letsencrypt.org/directory",
    help: "The authority that issues the certificates; using it agrees to its terms.",
  }),
  "acme-http-port": integer("number", 1, 65_535, {
    default: "80",
    help: "Port at which the authority's question arrives, with --acme-domain; other requests are sent on to https.",
  }),
  "https-host": text("address", {
    default: "0.0.0.0",
    help: "Address to listen on for https and for the authority, with --acme-domain.",
    check: (value) => (/^[0-9A-Za-z.:_-]+$/.test(value) ? undefined : "an IP address or a host name"),
  }),
  "https-port": integer("number", 1, 65_535, {
    default: "443",
    help: "Port for https, with --acme-domain.",
  }),
  "traces-endpoint": url({
    default: "",
    help: "OpenTelemetry collector that gets traces by OTLP over HTTP, such as http://127.0.0.1:4318; default: none.",
  }),
  "traces-sample": integer("percent", 0, 100, {
    default: "100",
    help: "So many requests in a hundred are traced; those that carry a trace already decide for themselves.",
  }),
  "trusted-proxies": networks({
    default: "",
    help: "Peers whose X-Forwarded-… and Forwarded headers are believed.",
  }),
  "journal-flush-interval": milliseconds(0, 1_000, {
    default: "0ms",
    help: "How long a write waits for others to join it; 0ms: only until the disk is free.",
  }),
  "journal-segment-size": bytes("64KiB", "1GiB", {
    default: "16MiB",
    help: "A journal segment of this size is handed to the event store.",
  }),
  "journal-seal-interval": milliseconds(50, 60_000, {
    default: "500ms",
    help: "Journal segments are handed to the event store this often: the delay until events are readable; less after a quiet time.",
  }),
  "journal-queue": bytes("1MiB", "4GiB", {
    default: "128MiB",
    help: "Bytes that may wait for the disk before new events are refused with 503.",
  }),
  "journal-reserve": bytes("0B", "1GiB", {
    default: "512MiB",
    help: "Disk space kept free besides what waiting events need; with less, new events get 503. At most 5% of the volume.",
  }),
  "archive-max-size": bytes("0B", "100000GiB", {
    default: "4GiB",
    help: "Loaded journal segments are kept compressed up to this size until a backup that the server can read covers them; 0 keeps none.",
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
      help: "Memory for everything, divided among the parts that have no setting of their own; default: what the container or the machine has, where that is less than 2GiB.",
    },
  ),
  "duckdb-memory-limit": bytes("64MiB", "1024GiB", {
    default: "512MiB",
    help: "Memory that the event store may use.",
  }),
  "duckdb-threads": integer("number", 1, 256, {
    default: String(Math.max(1, availableParallelism() - 1)),
    help: "Threads of the event store; one processor is left to captures and flag answers unless told otherwise.",
  }),
  "property-columns": integer("number", 0, 64, {
    default: "16",
    help: "At most so many of the properties that queries ask for get a column of their own, automatically; 0: none.",
  }),
  "query-timeout": milliseconds(100, 3_600_000, {
    default: "30s",
    help: "A query of the event store is stopped after this time.",
  }),
  "query-result-limit": bytes("1KiB", "1GiB", {
    default: "64MiB",
    help: "A query whose answer is larger is refused.",
  }),
  "events-url": clickhouse({
    default: "",
    help: "ClickHouse database that keeps the events, such as clickhouse://user@host:8123/database; default: DuckDB.",
  }),
  "events-password-file": text("path", {
    default: "",
    help: "File with ClickHouse's password; default: FLAGKEEP_EVENTS_PASSWORD, else the one in the address.",
  }),
  "postgres-url": postgres({
    default: "",
    help: "PostgreSQL database that several fronts share, such as postgres://user@host1,host2/database; needs --events-url.",
  }),
  "postgres-password-file": text("path", {
    default: "",
    help: "File with PostgreSQL's password; default: FLAGKEEP_POSTGRES_PASSWORD, else the one in the address.",
  }),
  "spike-factor": integer("number", 2, 1_000, {
    default: "10",
    help: "A spike begins above this many times a project's usual event rate.",
  }),
  "spike-minimum": integer("events/min", 1, 1_000_000_000, {
    default: "1000",
    help: "A spike begins above this many events per minute.",
  }),
  "spike-webhook": url({ default: "", help: "Address that gets a POST when a spike begins or ends." }),
  "events-retention": setting(
    "rules",
    parseRetention,
    "days such as 400d, and for single projects such as 400d,2=30d,3=never",
    {
      default: "",
      help: "Age at which events are deleted, counted from when they happened: 400d, or 400d,2=30d with a rule for project 2; default: never.",
    },
  ),
  "backup-destination": text("folder|s3://…", {
    default: "",
    help: "Where backups go: a folder, or s3://bucket/prefix; default: backups in the data directory.",
    check: (value) => (isPlaceForFiles(value) ? undefined : "a folder, or s3://bucket/prefix"),
  }),
  "backup-schedule": text("cron", {
    default: "",
    help: "When backups are made automatically, such as `0 3 * * *` for every night at three; default: never.",
    check: (value) => (value === "" || isCron(value) ? undefined : "a cron expression such as 0 3 * * *"),
  }),
  "scrub-schedule": text("cron", {
    default: "",
    help: "When everything on disk is read and compared with its checksums, such as `0 4 * * 0` for Sundays at four; default: never.",
    check: (value) => (value === "" || isCron(value) ? undefined : "a cron expression such as 0 4 * * 0"),
  }),
  "backup-keep-last": integer("number", 0, 100_000, {
    default: "3",
    help: "Of the scheduled backups, so many of the newest are kept.",
  }),
  "backup-keep-daily": integer("number", 0, 100_000, {
    default: "7",
    help: "Of the scheduled backups, the newest of each day is kept, so many in all.",
  }),
  "backup-keep-weekly": integer("number", 0, 100_000, {
    default: "4",
    help: "Of the scheduled backups, the newest of each week is kept, so many in all.",
  }),
  "backup-s3-endpoint": url({
    default: "",
    help: "Address of an S3-compatible store; default: AWS_ENDPOINT_URL, else AWS itself.",
  }),
  "backup-s3-region": text("name", {
    default: "",
    help: "Region of the store; default: AWS_REGION, else us-east-1.",
  }),
  "backup-s3-credentials-file": text("path", {
    default: "",
    help: "File with aws_access_key_id and aws_secret_access_key; default: AWS_ACCESS_KEY_ID and so on.",
  }),
  "backup-mode": choice(["full", "incremental"], {
    default: "full",
    help: "One file per backup, or only what has changed since the ones before.",
  }),
  "backup-recipients": text("age1…,…", {
    default: "",
    help: "Public keys of age that backups are encrypted for; default: as the key file says, else not at all.",
    check: (value) =>
      value === "" || /^(?:\s*age1[0-9a-z]+\s*(?:,|$))+$/.test(value)
        ? undefined
        : "public keys of age, age1…",
  }),
  "backup-key-file": text("path", {
    default: "",
    help: "File with the passphrase or the age keys that backups are encrypted with and read with.",
  }),
  "shutdown-timeout": milliseconds(500, 600_000, {
    default: "8s",
    help: "How long a stop may load waiting events; the rest is loaded at the next start.",
  }),
} as const;

export type SettingName = keyof typeof settings;
export type SettingValue<Name extends SettingName> = ReturnType<(typeof settings)[Name]["parse"]>;
export type Config = { readonly [Name in SettingName]: SettingValue<Name> };

/** `FLAGKEEP_DATA_DIR` for `data-dir`. */
export function environmentName(name: string): string {
  return `FLAGKEEP_${name.replaceAll("-", "_").toUpperCase()}`;
}
