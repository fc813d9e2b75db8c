/** What the front answers over HTTP: all routes, with what each needs, and the limits of requests. */

import { guardOf } from "../accounts/api/guard.ts";
import type { Metadata } from "../accounts/metadata.ts";
import type { Config } from "../config/settings.ts";
import { consolePath, consoleRoutes } from "../console/routes.ts";
import { EngineClient } from "../engine/client.ts";
import type { EngineSupervisor } from "../engine/supervisor.ts";
import { eventRoutes } from "../events/api/events.ts";
import { LiveEvents, liveRoutes } from "../events/api/live.ts";
import { queryRoutes } from "../events/api/query.ts";
import { explainRoutes } from "../flags/api/explain-route.ts";
import { evaluationRoutes } from "../flags/api/public/routes.ts";
import { FlagSets, groupTypesFrom } from "../flags/store/flag-sets.ts";
import type { PayloadCipher } from "../flags/store/flag-writes.ts";
import type { OverrideWriter } from "../flags/subject/override-writer.ts";
import { type App, createApp } from "../http/app.ts";
import { TrustedPlaces } from "../http/places.ts";
import type { RoleReadiness } from "../http/probes.ts";
import { defaultRateLimits, RateLimiter } from "../http/rate-limit.ts";
import { importUploadRoutes } from "../import/api/imports.ts";
import type { ImportUploads } from "../import/uploads.ts";
import { captureRoutes } from "../ingestion/routes.ts";
import type { JournalPort } from "../journal/journal.ts";
import type { Log } from "../log.ts";
import { mcpRoutes } from "../mcp/route.ts";
import { instanceRoutes } from "../operate/api/instance.ts";
import type { Metrics } from "../operate/metrics.ts";
import type { PeopleDamage } from "../operate/people-damage.ts";
import { Requests } from "../operate/requests.ts";
import type { Status } from "../operate/status-shape.ts";
import type { Traces } from "../operate/traces.ts";
import type { UnknownKeys } from "../operate/unknown-keys.ts";
import type { PeopleDb } from "../people/open.ts";
import { EnginePorts } from "./engine-ports.ts";
import type { instanceDeps } from "./instance.ts";
import type { Eraser } from "./person-eraser.ts";
import { managementRoutes } from "./routes.ts";
import type { SharedFront } from "./shared-front.ts";

/** What the front has opened. */
export interface FrontParts {
  config: Config;
  log: Log;
  metadata: Metadata;
  people: PeopleDb;
  journal: JournalPort;
  supervisor: EngineSupervisor;
  metrics: Metrics;
  traces: Traces | undefined;
  unknownKeys: UnknownKeys;
  payloads: PayloadCipher;
  overrides: OverrideWriter;
  uploads: ImportUploads;
  eraser: Eraser;
  instance: ReturnType<typeof instanceDeps>;
  shared: SharedFront | undefined;
  status: () => Promise<Status>;
  roles: () => RoleReadiness[];
  /** When it fires, streams end. */
  stopping: AbortSignal;
  /** That `/metrics` asks for; empty: none. */
  metricsToken: string;
  /** Gets every error of a request. */
  damage: PeopleDamage;
}

export function frontApp(parts: FrontParts): App {
  const { config, log, metadata, people, journal, metrics, traces, shared } = parts;
  const engine = new EngineClient(
    parts.supervisor,
    (reason) => metrics.countRefused("query", reason),
    traces && ((name, ask) => traces.asking(name, ask)),
  );
  const groupTypes = groupTypesFrom(people);
  const flagSets = new FlagSets(metadata, groupTypes);
  const ports = new EnginePorts({ engine, metadata, flagSets, people });
  const live = new LiveEvents(parts.stopping);
  const requests = new Requests(metrics.registry, log);
  const publicUrl = config["public-url"] || undefined;
  const projects = parts.unknownKeys.watching(metadata.projects);
  const app: App = createApp({
    guard: guardOf(metadata),
    log,
    onError: (error) => parts.damage.note(error),
    publicUrl,
    places: new TrustedPlaces(config["trusted-proxies"], publicUrl),
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
    roles: parts.roles,
    routes: [
      ...metrics.routes({ whom: config.metrics, token: parts.metricsToken }),
      ...captureRoutes({ journal: live.watching(journal), projects }),
      ...evaluationRoutes({
        ...{ projects, flagSets, people, publicUrl, stopping: parts.stopping },
        overrides: parts.overrides,
        onTrouble: (error: unknown) => {
          parts.damage.note(error);
          log.error({ error: String(error) }, "flags could not be computed fully");
        },
      }),
      ...managementRoutes({
        ...{ metadata, people, flagSets, groupTypes, payloads: parts.payloads, log },
        fronts: () => shared?.count ?? 1,
        afterwards: async (work) => (shared === undefined ? work() : await shared.changeLater(work)),
        personCounter: ports,
        cohortFiller: ports,
        insights: ports,
        eraser: parts.eraser,
      }),
      ...instanceRoutes({
        metadata,
        requests,
        uploads: parts.uploads,
        status: parts.status,
        ...parts.instance,
      }),
      ...importUploadRoutes({ metadata, uploads: parts.uploads }),
      ...eventRoutes({ engine }),
      ...queryRoutes({ engine }),
      ...explainRoutes({ metadata, flagSets, people }),
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
