/**
 * The HTTP application of a worker: it captures events and evaluates flags itself, and forwards every other request to
 * the server process.
 */

import { getGuard } from "../../accounts/api/guard.ts";
import type { Metadata } from "../../accounts/metadata.ts";
import type { OverrideWriter } from "../../flags/evaluation-context/override-writer.ts";
import { valueRoutes } from "../../flags/sdk/routes.ts";
import { FlagSets, groupTypesFrom } from "../../flags/store/flag-sets.ts";
import { type App, createApp } from "../../http/app.ts";
import type { Connection } from "../../http/edge-deps.ts";
import type { Route } from "../../http/route.ts";
import { TrustedProxies } from "../../http/trusted-proxies.ts";
import type { JournalSink } from "../../ingestion/ports.ts";
import { captureRoutes } from "../../ingestion/routes.ts";
import type { Log } from "../../log.ts";
import type { RequestLog } from "../../operate/request-log.ts";
import type { Traces } from "../../operate/traces.ts";
import type { UnknownKeys } from "../../operate/unknown-keys.ts";
import type { PersonsDb } from "../../persons/open.ts";
import { SqlitePersonReader } from "../../persons/sqlite-person-reader.ts";
import { runningSurveys } from "../../surveys/public-route.ts";
import { forward } from "./forward.ts";
import type { WorkerStart } from "./messages.ts";

export interface WorkerAppDeps {
  readonly start: WorkerStart;
  readonly log: Log;
  readonly metadata: Metadata;
  readonly people: PersonsDb;
  readonly journal: JournalSink;
  readonly overrides: OverrideWriter;
  readonly requests: RequestLog;
  readonly unknownKeys: UnknownKeys;
  readonly traces: Traces | undefined;
  /** Receives every error of a request. */
  readonly onError: (error: unknown) => void;
  /** Socket of the server process. */
  readonly forwardTo: string;
}

export function createWorkerApp(deps: WorkerAppDeps): App {
  const { start, log, metadata, people, requests, traces, onError } = deps;
  const { config, workers } = start;
  const publicUrl = config["public-url"] || undefined;
  const projects = deps.unknownKeys.watching(metadata.projects);
  const routes = [
    ...captureRoutes({ journal: deps.journal, projects }),
    ...valueRoutes({
      projects,
      persons: new SqlitePersonReader(people),
      publicUrl,
      overrides: deps.overrides,
      flagSets: new FlagSets(metadata, groupTypesFrom(people, onError)),
      hasSurveys: runningSurveys(metadata),
      onError: (error: unknown) => {
        onError(error);
        log.error({ error: String(error) }, "failed to evaluate some flags");
      },
    }),
  ];
  const app = createApp({
    guard: getGuard(metadata),
    log,
    routes,
    onError,
    publicUrl,
    origins: new TrustedProxies(config["trusted-proxies"], publicUrl),
    limits: {
      bytesMax: config["body-limit"],
      apiBytesMax: config["api-body-limit"],
      // One budget for the whole server: a body larger than a worker's part gets all of it.
      inFlightBytesMax: Math.ceil(config["bodies-in-flight"] / workers),
    },
    onSeen: (seen) => {
      requests.see(seen);
      traces?.seen(seen);
    },
  });
  const handle = traces === undefined ? app.handle : traces.around(app.handle);
  const isOwn = getMatcher(routes);
  let getConnection: ((request: Request) => Connection) | undefined;
  return {
    async handle(request) {
      if (isOwn(request.url)) return await handle(request);
      const connection = getConnection?.(request);
      return await forward(deps.forwardTo, request, {
        peer: () => connection?.peer(),
        allowSilence: (seconds) => connection?.allowSilence(seconds),
        isSecure: request.url.startsWith("https:"),
      });
    },
    connect(known) {
      getConnection = known;
      app.connect(known);
    },
  };
}

const hostStart = /^https?:\/\//;

/** Whether the path of a URL belongs to one of the routes. */
function getMatcher(routes: readonly Route[]): (url: string) => boolean {
  const paths = routes.flatMap(({ path, aliases }) => [path, ...aliases]);
  const exact = new Set(paths.flatMap((path) => [path, `${path}/`]));
  // Path parameters are last: all paths below belong to the same routes.
  const prefixes = [...new Set(paths.filter((path) => path.includes(":")))].map((path) =>
    path.slice(0, path.indexOf(":")),
  );
  return (url) => {
    const start = url.indexOf("/", hostStart.exec(url)![0].length);
    const mark = url.indexOf("?", start);
    const path = url.slice(start, mark === -1 ? undefined : mark);
    return exact.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
  };
}
