/**
 * An HTTP worker: a process that listens on the server's port together with others. It reads keys, flags and persons
 * itself, and writes nothing: entries go to the journal of the server process.
 */

import { openMetadata } from "../../accounts/metadata.ts";
import { engineSocketName, readMessages } from "../../engine/messages.ts";
import { type OverridesToStore, OverrideWriter } from "../../flags/evaluation-context/override-writer.ts";
import { listen, listenSecurely } from "../../http/server.ts";
import { sleep } from "../../lib/time.ts";
import { createLog } from "../../log.ts";
import { RequestLog } from "../../operate/request-log.ts";
import { SqliteCorruption } from "../../operate/sqlite-corruption.ts";
import { UnknownKeys } from "../../operate/unknown-keys.ts";
import { paths } from "../../paths.ts";
import { rpcCall } from "../../rpc/client.ts";
import { openServedPersons } from "../open-people.ts";
import { getTraces } from "../traces.ts";
import { RemoteJournal } from "./journal-link.ts";
import {
  type Certificate,
  forwardSocketName,
  journalSocketName,
  type WorkerCommand,
  type WorkerReport,
  type WorkerStart,
} from "./messages.ts";
import { createWorkerApp } from "./worker-app.ts";

/** How often a worker reports its figures, and that it does not hang. */
const reportEveryMs = 1_000;
/** How long a stop waits for requests in flight. */
const inFlightMs = 2_000;
/** How long a stop waits for hash-key overrides to be stored. */
const overridesSettleMs = 1_000;

/** Runs the worker until the server process stops it or exits. */
export async function runWorker(): Promise<void> {
  // Signals reach the whole process group; the server process decides when a worker stops.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);
  let worker: Promise<Worker> | undefined;
  await readMessages<WorkerCommand>(Bun.stdin.stream(), (command) => {
    if (command.type === "start") worker = startWorker(command.start).catch(fail);
    else void worker?.then((started) => started[command.type](command as never)).catch(fail);
  });
  endWithServer();
}

/**
 * Ends a worker whose server process has exited. It closes no store: closing the last connection removes SQLite's log,
 * which a start on a full disk could not create again.
 */
function endWithServer(): void {
  process.kill(process.pid, "SIGKILL");
}

function fail(error: unknown): never {
  report({ type: "failed", message: (error as Error).message });
  process.exit(1);
}

function report(message: WorkerReport): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

/** Handlers of the commands after the start. */
interface Worker {
  certificate(command: { certificate: Certificate }): void;
  overrides(command: { overrides: OverridesToStore }): void;
  report(): void;
  stop(): Promise<void>;
}

async function startWorker(start: WorkerStart): Promise<Worker> {
  const { config } = start;
  const dataDir = config["data-dir"];
  // Relative socket names: a socket path is limited to 108 bytes.
  process.chdir(dataDir);
  const log = createLog(config["log-level"], "json", {
    write: (line) => report({ type: "log", line }),
  });
  const corruption = new SqliteCorruption(dataDir);
  corruption.onUnknownFile = () => report({ type: "corrupt" });
  // A change is visible to every worker before it is answered.
  const metadata = openMetadata(paths(dataDir).metadata, { checkEveryMs: 0 });
  const cacheBytes = start.cacheBytes ?? undefined;
  const people = openServedPersons(dataDir, { cacheBytes, corruption, log, mayMigrate: false });
  const journal = await RemoteJournal.connect(journalSocketName, {
    queueBytesMax: config["journal-queue"],
    onClosed: endWithServer,
  });
  const overrides = new OverrideWriter({
    store: (queued) => rpcCall(engineSocketName, "addHashKeyOverrides", queued),
    onDiscarded: (error) => log.error({ error: String(error) }, "failed to store hash key overrides"),
    share: (queued) => report({ type: "overrides", overrides: queued }),
  });
  const requests = new RequestLog(undefined, log);
  const unknownKeys = new UnknownKeys();
  const traces = await getTraces(config, log);
  const app = createWorkerApp({
    start,
    log,
    metadata,
    people,
    journal,
    overrides,
    requests,
    unknownKeys,
    traces,
    onError: (error) => corruption.record(error),
    forwardTo: forwardSocketName,
  });
  const bodyBytesMax = config["body-limit"];
  const http = listen(app, { hostname: config.host, port: start.port, bodyBytesMax, isShared: true });
  let https: ReturnType<typeof listenSecurely>;
  const useCertificate = (tls: Certificate) => {
    // Open connections keep the previous certificate.
    void https?.stop();
    https = listenSecurely(app, { config, log, tls, isShared: true }) ?? https;
  };
  if (start.certificate !== null) useCertificate(start.certificate);
  const notify = () =>
    report({
      type: "figures",
      figures: {
        requests: requests.take(),
        unknownKeys: unknownKeys.take(),
        keyUses: metadata.projects.takeUses(),
      },
    });
  report({ type: "listening", port: http.port! });
  setInterval(notify, reportEveryMs);
  return {
    certificate: ({ certificate }) => useCertificate(certificate),
    overrides: (command) => void overrides.add(command.overrides, true),
    report: notify,
    async stop() {
      await Promise.race([Promise.all([http.stop(), https?.stop()]), sleep(inFlightMs)]);
      await Promise.all([https?.stop(true), http.stop(true)]);
      await overrides.settle(overridesSettleMs);
      await traces?.stop();
      notify();
      // The last report may still be in the stream's buffer.
      await new Promise<void>((resolve) => void process.stdout.write("", () => resolve()));
      process.exit(0);
    },
  };
}
