/** The public routes of flag evaluation in this process, on stores in temporary folders. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getGuard } from "../../../src/accounts/api/guard.ts";
import { type Initialized, initialize } from "../../../src/accounts/initialize.ts";
import { type Metadata, openMetadata } from "../../../src/accounts/metadata.ts";
import { type CohortFields, createCohort } from "../../../src/cohorts/cohorts.ts";
import { publicFeatureRoutes } from "../../../src/early-access/public-route.ts";
import { OverrideWriter } from "../../../src/flags/evaluation-context/override-writer.ts";
import type { Flag, FlagFields } from "../../../src/flags/fields.ts";
import { evaluationRoutes } from "../../../src/flags/sdk/routes.ts";
import { FlagSets, groupTypesFrom } from "../../../src/flags/store/flag-sets.ts";
import { createFlag, updateFlag } from "../../../src/flags/store/flag-writes.ts";
import { type App, createApp } from "../../../src/http/app.ts";
import type { Route } from "../../../src/http/route.ts";
import { TrustedProxies } from "../../../src/http/trusted-proxies.ts";
import { clientSignal } from "../../../src/lib/cancellation.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { addHashKeyOverrides } from "../../../src/persons/hash-key-overrides.ts";
import type { SubjectReader } from "../../../src/persons/person-reader.ts";
import { SqlitePersonReader } from "../../../src/persons/sqlite-person-reader.ts";
import { publicSurveyRoutes } from "../../../src/surveys/public-route.ts";
import { TestPersons } from "../../persons/support.ts";
import { plainPayloads } from "../../support/payloads.ts";

/** The present of every test: 2026-03-01, noon. */
export const fixedNow = new Date("2026-03-01T12:00:00.000Z");

/** Configuration of the browser library, without products that Flagkeep does not have. */
export const clientConfig = {
  hasFeatureFlags: true,
  supportedCompression: ["gzip", "gzip-js"],
  analytics: { endpoint: "/i/v0/e/" },
  elementsChainAsString: true,
  autocapture_opt_out: false,
  defaultIdentifiedOnly: true,
  sessionRecording: false,
  surveys: false,
  productTours: false,
  heatmaps: false,
  captureDeadClicks: false,
  capturePerformance: false,
  autocaptureExceptions: false,
  errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
  logs: { captureConsoleLogs: false },
  conversations: false,
  isAuthenticated: false,
  toolbarParams: {},
  siteApps: [],
};

interface TestOptions {
  bodyLimitBytes?: number;
  /** The store that is read instead of the one with the events. */
  people?: unknown;
  /** Wraps the reader of persons. */
  reading?: (persons: SqlitePersonReader) => SubjectReader;
}

export class TestEvaluation implements Disposable {
  readonly people = new TestPersons();
  readonly metadata: Metadata;
  readonly initialized: Initialized;
  readonly errors: unknown[] = [];
  app: App;
  overrides: OverrideWriter = this.freshOverrides();
  /** On whose behalf the engine was asked. */
  readonly callers: (AbortSignal | undefined)[] = [];
  routes: readonly Route[] = [];
  /** For whom overrides were handed to the engine, down or not; once for every time. */
  readonly handedOver: string[] = [];
  engineIsDown = false;
  now = fixedNow;
  private readonly options: TestOptions;
  private readonly folder = mkdtempSync(join(tmpdir(), "flagkeep-evaluation-"));

  constructor(options: TestOptions & { projectApiKey?: string } = {}) {
    this.metadata = openMetadata(join(this.folder, "metadata.sqlite"));
    this.initialized = initialize(
      this.metadata,
      {
        organization: "Acme",
        project: "Shop",
        email: "ann@example.com",
        projectApiKey: options.projectApiKey,
      },
      fixedNow,
    );
    this.options = options;
    this.app = this.freshApp();
  }

  /** The routes on the same stores, with nothing in memory of earlier requests. */
  freshApp(): App {
    this.routes = this.freshRoutes();
    const limit = this.options.bodyLimitBytes ?? 1024 * 1024;
    return createApp({
      guard: getGuard(this.metadata),
      log: { error: ({ error }) => this.errors.push(error) },
      limits: { bytesMax: limit, apiBytesMax: limit, inFlightBytesMax: 2 ** 28 },
      origins: new TrustedProxies([]),
      routes: this.routes,
    });
  }

  /** As after a restart of the server. */
  restart(): void {
    this.overrides = this.freshOverrides();
    this.app = this.freshApp();
  }

  /** Sets the clock to a number of seconds after the start of the test. */
  after(seconds: number): void {
    this.now = new Date(fixedNow.getTime() + seconds * 1_000);
  }

  /** So many seconds after the start of the test, in epoch microseconds. */
  micros(seconds: number): number {
    return fixedNow.getTime() * 1_000 + seconds * 1_000_000;
  }

  private freshOverrides(): OverrideWriter {
    return new OverrideWriter({
      store: async ({ projectId, ...overrides }) => {
        this.handedOver.push(overrides.distinctIds[0]!);
        this.callers.push(clientSignal());
        if (this.engineIsDown) throw new Error("The engine is down.");
        return addHashKeyOverrides(this.people.db, projectId, overrides);
      },
      onDiscarded: (error) => this.errors.push(error),
    });
  }

  private freshRoutes(): Route[] {
    const { db } = this.people;
    const { metadata } = this;
    const lists = [...publicFeatureRoutes({ metadata }), ...publicSurveyRoutes({ metadata })];
    const persons = new SqlitePersonReader((this.options.people as typeof db) ?? db);
    const routes = evaluationRoutes({
      projects: this.metadata.projects,
      flagSets: new FlagSets(this.metadata, groupTypesFrom(db)),
      persons: this.options.reading?.(persons) ?? persons,
      overrides: this.overrides,
      onError: (error) => this.errors.push(error),
      now: () => this.now.getTime(),
    });
    return [...routes, ...lists];
  }

  get storeCalls(): number {
    return this.handedOver.length;
  }

  get token(): string {
    return this.initialized.project.api_key;
  }

  flag(key: string, filters: JsonObject, fields: Partial<FlagFields> = {}): Flag {
    return createFlag(this.writing, {
      projectId: 1,
      by: 1,
      fields: { key, filters, ...fields },
      createsUsageDashboard: false,
      now: fixedNow,
    });
  }

  change(flag: Flag, fields: Partial<FlagFields>): Flag {
    return updateFlag(this.writing, { projectId: 1, id: flag.id, by: 1, fields, sent: {}, now: fixedNow });
  }

  cohort(fields: Partial<CohortFields> & { name: string }): number {
    return createCohort(this.metadata, { projectId: 1, by: 1, fields }, fixedNow).id;
  }

  /** Sends whatever is given. */
  async send(path: string, init: RequestInit = {}): Promise<Response> {
    return await this.app.handle(new Request(`http://localhost${path}`, { method: "POST", ...init }));
  }

  /** POSTs JSON with the project's key as a server library does, and reads the JSON of a success. */
  async ask(
    body: Record<string, unknown>,
    path = "/flags/?v=2",
    headers: Record<string, string> = {},
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  ): Promise<any> {
    const response = await this.send(path, {
      body: JSON.stringify({ token: this.token, ...body }),
      headers: { "Content-Type": "application/json", "User-Agent": "posthog-node/5.70.0", ...headers },
    });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return await response.json();
  }

  /** The values that a client sees, by flag key. */
  async values(body: Record<string, unknown>): Promise<Record<string, boolean | string>> {
    const { flags } = (await this.ask(body)) as {
      flags: Record<string, { enabled: boolean; variant: string | null }>;
    };
    return Object.fromEntries(
      Object.entries(flags).map(([key, { enabled, variant }]) => [key, enabled && (variant ?? true)]),
    );
  }

  [Symbol.dispose](): void {
    this.metadata.close();
    this.people[Symbol.dispose]();
    rmSync(this.folder, { recursive: true });
  }

  private get writing() {
    return { metadata: this.metadata, payloads: plainPayloads };
  }
}
