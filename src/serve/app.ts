/** HTTP app of the server: all routes with their dependencies, and the request limits. */

import { getGuard } from "../accounts/api/guard.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { CohortSizeMonitor, cohortCountMs } from "../cohorts/cohort-size-monitor.ts";
import type { Config } from "../config/settings.ts";
import { consolePath, consoleRoutes } from "../console/routes.ts";
import { sharedRoutes } from "../dashboards/api/shared.ts";
import { publicFeatureRoutes, publicKeyError } from "../early-access/public-route.ts";
import { EngineClient } from "../engine/client.ts";
import type { EngineSupervisor } from "../engine/supervisor.ts";
import { eventRoutes } from "../events/api/events.ts";
import { type LiveEvents, liveRoutes } from "../events/api/live.ts";
import { queryRoutes } from "../events/api/query.ts";
import { publicWebExperimentRoutes } from "../experiments/api/public-route.ts";
import { experimentQueries } from "../experiments/api/query-kinds.ts";
import { ColumnPinner, pinIntervalMs } from "../experiments/column-pins.ts";
import { RollbackMonitor } from "../experiments/rollback-monitor.ts";
import type { OverrideWriter } from "../flags/evaluation-context/override-writer.ts";
import { evaluationRoutes } from "../flags/sdk/routes.ts";
import { FlagSets, groupTypesFrom } from "../flags/store/flag-sets.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import { type App, createApp } from "../http/app.ts";
import type { RoleReadiness } from "../http/probes.ts";
import { defaultRateLimits, RateLimiter } from "../http/rate-limit.ts";
import { TrustedProxies } from "../http/trusted-proxies.ts";
import { importUploadRoutes } from "../import/api/imports.ts";
import type { ImportUploads } from "../import/uploads.ts";
import { captureRoutes } from "../ingestion/routes.ts";
import type { JournalPort } from "../journal/journal.ts";
import type { SecretCipher } from "../lib/sealed-text.ts";
import type { Log } from "../log.ts";
import { mcpRoutes } from "../mcp/route.ts";
import { instanceRoutes } from "../operate/api/instance.ts";
import type { Metrics } from "../operate/metrics.ts";
import type { RequestLog } from "../operate/request-log.ts";
import type { SqliteCorruption } from "../operate/sqlite-corruption.ts";
import type { StatusSample } from "../operate/status-history.ts";
import type { Status } from "../operate/status-schema.ts";
import type { Traces } from "../operate/traces.ts";
import type { UnknownKeys } from "../operate/unknown-keys.ts";
import { explainOperations } from "../operations/flags.ts";
import { importOperations } from "../operations/imports.ts";
import { operationRoutes } from "../operations/routes.ts";
import { SqliteIngestionReader } from "../persons/ingestion-reader.ts";
import type { PersonsDb } from "../persons/open.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { publicSurveyRoutes, runningSurveys } from "../surveys/public-route.ts";
import { SurveyMonitor, surveyCheckMs } from "../surveys/survey-monitor.ts";
import type { ClusterNode } from "./cluster-node";
import { EngineAdapters } from "./engine-ports.ts";
import type { instanceDeps } from "./instance.ts";
import type { PersonDeletionService } from "./person-deletion.ts";
import { managementRoutes } from "./routes.ts";

export interface AppDeps {
  config: Config;
  log: Log;
  metadata: Metadata;
  people: PersonsDb;
  persons: PersonReader;
  journal: JournalPort;
  supervisor: EngineSupervisor;
  metrics: Metrics;
  requests: RequestLog;
  live: LiveEvents;
  traces: Traces | undefined;
  unknownKeys: UnknownKeys;
  payloads: PayloadCipher;
  secrets: SecretCipher;
  overrides: OverrideWriter;
  uploads: ImportUploads;
  eraser: PersonDeletionService;
  instance: ReturnType<typeof instanceDeps>;
  shared: ClusterNode | undefined;
  /** Resolves when HTTP workers have reported what they counted. */
  collectFigures: () => Promise<void>;
  status: () => Promise<Status>;
  history: () => readonly StatusSample[];
  roles: () => RoleReadiness[];
  warnings: () => readonly string[];
  /** Aborts open streams. */
  stopping: AbortSignal;
  /** Bearer token required for `/metrics`; empty: none. */
  metricsToken: string;
  /** Receives every request error. */
  corruption: SqliteCorruption;
}

export function createServerApp(deps: AppDeps): App {
  const { config, log, metadata, people, persons, journal, metrics, traces, shared, requests, live } = deps;
  const engine = new EngineClient(
    deps.supervisor,
    (reason) => metrics.countRejected("query", reason),
    traces && ((name, ask) => traces.request(name, ask)),
  );
  const groupTypes = groupTypesFrom(people, (error) => deps.corruption.record(error));
  const flagSets = new FlagSets(metadata, groupTypes);
  const ports = new EngineAdapters({ engine, metadata, flagSets, persons });
  const change = async <Result>(work: (now?: Date) => Result) =>
    shared === undefined ? work() : await shared.change(work);
  const rollbacks = new RollbackMonitor({
    metadata,
    payloads: deps.payloads,
    groupTypes,
    experiments: ports,
    insights: ports,
    change,
    revision: async () => JSON.stringify(await engine.ask("loadedSeqs", {})),
    onError: (error) =>
      log.error({ error: String(error) }, "failed to check a guardrail or rollback condition"),
  });
  rollbacks.start(config["rollback-interval"], deps.stopping);
  const surveys = new SurveyMonitor({
    metadata,
    payloads: deps.payloads,
    groupTypes,
    surveyEvents: ports,
    change,
    onError: (error) => log.error({ error: String(error) }, "failed to check the limit of a survey"),
  });
  surveys.start(surveyCheckMs, deps.stopping);
  const sizes = new CohortSizeMonitor({
    metadata,
    persons,
    cohortFiller: ports,
    change,
    onError: (error) => log.error({ error: String(error) }, "failed to count a cohort"),
  });
  sizes.start(cohortCountMs, deps.stopping);
  const pinner = new ColumnPinner({
    db: metadata.db,
    pin: (names) => engine.ask("pinProperties", { names }),
    onError: (error) => log.debug({ error: String(error) }, "failed to pin property columns; retrying later"),
  });
  pinner.start(pinIntervalMs, deps.stopping);
  const publicUrl = config["public-url"] || undefined;
  const projects = deps.unknownKeys.watching(metadata.projects);
  const app: App = createApp({
    guard: getGuard(metadata),
    log,
    onError: (error) => deps.corruption.record(error),
    publicUrl,
    origins: new TrustedProxies(config["trusted-proxies"], publicUrl),
    limits: {
      bytesMax: config["body-limit"],
      apiBytesMax: config["api-body-limit"],
      inFlightBytesMax: config["bodies-in-flight"],
    },
    onSeen: (seen) => {
      requests.see(seen);
      traces?.seen(seen);
    },
    homePage: config.console === "on" ? consolePath : undefined,
    roles: deps.roles,
    warnings: () => [...deps.warnings(), ...(shared?.warnings ?? [])],
    routes: [
      ...metrics.routes({
        whom: config.metrics,
        token: deps.metricsToken,
        collectFigures: deps.collectFigures,
      }),
      ...captureRoutes({ journal: live.watching(journal), projects }),
      ...evaluationRoutes({
        projects,
        flagSets,
        persons,
        publicUrl,
        stopping: deps.stopping,
        overrides: deps.overrides,
        hasSurveys: runningSurveys(metadata),
        onError: (error: unknown) => {
          deps.corruption.record(error);
          log.error({ error: String(error) }, "failed to evaluate some flags");
        },
      }),
      ...publicFeatureRoutes({ metadata }),
      ...publicSurveyRoutes({ metadata }),
      ...publicWebExperimentRoutes({ metadata, keyError: publicKeyError }),
      ...managementRoutes({
        metadata,
        ingestion: new SqliteIngestionReader(people),
        persons,
        flagSets,
        groupTypes,
        payloads: deps.payloads,
        log,
        secrets: deps.secrets,
        webhookAddresses: { allowed: config["webhook-allowed-networks"] },
        nodeCount: () => shared?.count ?? 1,
        afterwards: async (work) => (shared === undefined ? work() : await shared.changeLater(work)),
        personCounter: ports,
        cohortFiller: ports,
        insights: ports,
        experiments: ports,
        surveyEvents: ports,
        enrollment: {
          find: (projectId, filters, page) => ports.find(projectId, filters, page),
          capture: (token, event) => captureEvent((request) => app.handle(request), token, event),
        },
        eraser: deps.eraser,
      }),
      ...sharedRoutes({ metadata, insights: ports, nodeCount: () => shared?.count ?? 1 }),
      ...instanceRoutes({
        metadata,
        requests,
        uploads: deps.uploads,
        status: deps.status,
        history: deps.history,
        collectFigures: deps.collectFigures,
        ...deps.instance,
      }),
      ...operationRoutes(importOperations, { uploads: deps.uploads }),
      ...importUploadRoutes({ metadata, uploads: deps.uploads }),
      ...eventRoutes({ engine }),
      ...queryRoutes({ engine, kinds: experimentQueries({ metadata, groupTypes, experiments: ports }) }),
      ...operationRoutes(explainOperations, { metadata, flagSets, persons }),
      ...liveRoutes({ live }),
      ...(config.console === "on" ? consoleRoutes(metadata) : []),
      ...(config.mcp === "on" ? mcpRoutes({ handle: (request) => app.handle(request) }) : []),
    ],
    rateLimiter:
      config["rate-limits"] === "on"
        ? new RateLimiter(defaultRateLimits, () => shared?.count ?? 1)
        : undefined,
    shared,
  });
  return traces === undefined ? app : { ...app, handle: traces.around(app.handle) };
}

/** Captures an event of the server itself, like one of a client. @throws {Error} it was rejected */
async function captureEvent(
  handle: (request: Request) => Promise<Response>,
  token: string,
  event: object,
): Promise<void> {
  const response = await handle(
    new Request("http://localhost/capture/", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ api_key: token, ...event }),
    }),
  );
  if (!response.ok) throw new Error(`The event was rejected: ${await response.text()}`);
}
